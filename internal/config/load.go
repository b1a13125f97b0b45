package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Layer names where a value came from.
type Layer string

// The layers, strongest first. LayerFile is the file that --config names; it
// replaces both files of the origin.
const (
	LayerFlag    Layer = "flag"
	LayerEnv     Layer = "environment"
	LayerFile    Layer = "--config"
	LayerLocal   Layer = "superqode.local.yaml"
	LayerOrigin  Layer = "superqode.yaml"
	LayerUser    Layer = "user"
	LayerDefault Layer = "default"
)

// Origin is where a value came from: a file with line and column, an environment
// variable or a flag, or nothing but the default.
type Origin struct {
	Layer        Layer  `json:"layer"`
	Name         string `json:"name"` // the file's path, the variable or the flag; "" for a default
	Line, Column int    `json:"-"`
}

// String returns "/dir/superqode.yaml:3", "SUPERQODE_…", "--mode" or "default".
func (o Origin) String() string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case o.Name != "":
		return o.Name
	}
	return string(o.Layer)
}

// Value is one effective key.
type Value struct {
	Key    string
	Value  any // string, int64, bool, []any or map[string]any
	Origin Origin

	entries []int // of a list in a file: the line in which each entry begins
}

// entry returns where the i-th entry of a list begins.
func (v Value) entry(i int) Origin {
	origin := v.Origin
	if i < len(v.entries) {
		origin.Line, origin.Column = v.entries[i], 0
	}
	return origin
}

// Text returns the value on one line, as it could stand in YAML.
func (v Value) Text() string {
	if s, ok := v.Value.(string); ok && s != "" && !strings.ContainsAny(s, "\n:#\"'{}[],&*!|>%@` ") {
		return s
	}
	b, err := json.Marshal(v.Value) // JSON is YAML; the values are plain data
	if err != nil {
		return fmt.Sprint(v.Value)
	}
	return string(b)
}

// MarshalJSON writes {"key","value","layer","name","line","used"}.
func (v Value) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
		Origin
		Line int  `json:"line"`
		Used bool `json:"used"` // every key of the table is
	}{v.Key, v.Value, v.Origin, v.Origin.Line, true})
}

// Sources says where to look. OriginDir is the origin's root, or ""; File is
// the argument of --config; both are absolute. Env is the whole environment.
// Flags holds, by full key, what flags set: the last text counts for a single
// value, all of them for a list.
type Sources struct {
	OriginDir string
	File      string
	Env       []string
	Flags     map[string][]string
}

// Path is one file that is read when it exists.
type Path struct {
	Layer  Layer  `json:"layer"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// maxFileSize keeps Load from reading what cannot be a configuration.
const maxFileSize = 1 << 20

// Paths returns the files of all layers, strongest first.
func Paths(src Sources) []Path {
	var out []Path
	add := func(layer Layer, path string) {
		_, err := os.Stat(path)
		out = append(out, Path{layer, path, err == nil})
	}
	if src.File != "" {
		add(LayerFile, src.File)
	} else if src.OriginDir != "" {
		add(LayerLocal, filepath.Join(src.OriginDir, "superqode.local.yaml"))
		add(LayerOrigin, filepath.Join(src.OriginDir, "superqode.yaml"))
	}
	base := superqode.Getenv(src.Env, "XDG_CONFIG_HOME")
	if home := superqode.Getenv(src.Env, "HOME"); !filepath.IsAbs(base) && filepath.IsAbs(home) {
		base = filepath.Join(home, ".config") // the XDG specification ignores relative paths
	}
	if filepath.IsAbs(base) {
		add(LayerUser, filepath.Join(base, "superqode", "config.yaml"))
	}
	return out
}

// Load reads every layer. It skips files that do not exist, except the one that
// --config names.
func Load(ctx context.Context, src Sources) (*Config, error) {
	l := newLoader()
	l.dir = src.OriginDir
	for _, p := range slices.Backward(Paths(src)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := readFile(p.Path)
		if errors.Is(err, os.ErrNotExist) && p.Layer != LayerFile {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := l.file(p, data); err != nil {
			return nil, err
		}
	}
	if err := l.environment(src.Env); err != nil {
		return nil, err
	}
	if err := l.flags(src.Flags); err != nil {
		return nil, err
	}
	c := l.config()
	if err := c.checkTargets(); err != nil {
		return nil, err
	}
	return c, nil
}

// readFile reads a regular file only: a FIFO in its place would hang.
func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxFileSize {
		return nil, &Error{Where: path, Msg: "is not a file of at most 1 MiB"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize))
	return data, errors.Join(err, f.Close())
}

// loader collects values, weakest layer first.
type loader struct {
	root   *field
	dir    string // what relative paths in variables count from
	order  []string
	fields map[string]*field
	values map[string]Value
}

func newLoader() *loader {
	l := &loader{root: table(), fields: map[string]*field{}, values: map[string]Value{}}
	l.root.leaves("", func(key string, f *field) {
		l.order = append(l.order, key)
		l.fields[key] = f
		l.values[key] = Value{Key: key, Value: f.def, Origin: Origin{Layer: LayerDefault}}
	})
	return l
}

func (l *loader) file(p Path, data []byte) error {
	d := decoder{name: p.Path, dir: filepath.Dir(p.Path)}
	if err := d.file(data); err != nil {
		return err
	}
	for key, s := range d.sets {
		l.values[key] = Value{key, s.value, Origin{p.Layer, p.Path, s.line, s.column}, s.entries}
	}
	return nil
}

// envName returns the variable that sets a key: workspace.max_size_mb is
// SUPERQODE_WORKSPACE_MAX_SIZE_MB.
func (l *loader) envName(key string) string {
	return "SUPERQODE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// environment reads the variables of the keys. Other SUPERQODE_* variables
// belong to sessions, but one that begins like a section is a typo.
func (l *loader) environment(env []string) error {
	known := map[string]string{}
	var vars []string
	for _, key := range l.order {
		known[l.envName(key)] = key
		vars = append(vars, l.envName(key))
	}
	for _, kv := range env {
		name, s, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "SUPERQODE_") || s == "" {
			continue
		}
		key, ok := known[name]
		if !ok {
			if slices.ContainsFunc(l.root.fields, func(f field) bool { return f.kind == section && strings.HasPrefix(name, l.envName(f.name)+"_") }) {
				return &Error{Where: name, Msg: "unknown variable (the nearest known one is " + nearest(name, vars) + ")"}
			}
			continue
		}
		if err := l.text(key, name, LayerEnv, envTexts(l.fields[key], s)); err != nil {
			return err
		}
	}
	return nil
}

// envTexts splits a list's variable at commas outside braces (*.{js,css} is one
// pattern), or reads it as a YAML list if it begins like one.
func envTexts(f *field, s string) []string {
	if f.kind != list || f.item.kind != textKind || strings.HasPrefix(s, "[") {
		return []string{s}
	}
	var out []string
	depth, begin := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth = max(depth-1, 0)
		case ',':
			if depth == 0 {
				out, begin = append(out, s[begin:i]), i+1
			}
		}
	}
	return append(out, s[begin:])
}

func (l *loader) flags(flags map[string][]string) error {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		f := l.fields[key]
		if f == nil {
			return &Error{Where: "flag", Msg: fmt.Sprintf("unknown key %q (the nearest known one is %s)", key, nearest(key, l.order))}
		}
		name := f.flag
		if name == "" {
			name = "flag"
		}
		if err := l.text(key, name, LayerFlag, flags[key]); err != nil {
			return err
		}
	}
	return nil
}

// text sets a key from texts outside files.
func (l *loader) text(key, name string, layer Layer, texts []string) error {
	f := l.fields[key]
	var v any
	var err error
	switch {
	case len(texts) == 0:
		return nil
	case layer == LayerEnv && f.kind == dict:
		return l.entries(f, key, name, texts[0])
	case layer == LayerEnv && f.kind == list && (f.item.kind != textKind || len(texts) == 1 && strings.HasPrefix(texts[0], "[")):
		d := decoder{name: name, dir: l.dir, bare: true}
		root, err := d.parse([]byte(texts[0]))
		if err != nil || root == nil {
			return err
		}
		if v, err = d.value(f, key, root); err != nil {
			return err
		}
	case f.kind == list && f.item.kind == textKind:
		out := []any{}
		for _, s := range texts {
			item, perr := f.item.parse(s)
			if perr != nil {
				return &Error{Where: name, Msg: perr.Error()}
			}
			out = append(out, item)
		}
		v = out
	default:
		v, err = f.parse(texts[len(texts)-1])
	}
	if err != nil {
		return &Error{Where: name, Msg: err.Error()}
	}
	l.values[key] = Value{Key: key, Value: v, Origin: Origin{Layer: layer, Name: name}}
	return nil
}

// entries sets the entries of a dict from a variable's YAML.
func (l *loader) entries(f *field, key, name, text string) error {
	d := decoder{name: name, dir: l.dir, bare: true, sets: map[string]set{}}
	root, err := d.parse([]byte(text))
	if err != nil || root == nil {
		return err
	}
	if err := d.entries(f, key, root); err != nil {
		return err
	}
	for k, s := range d.sets {
		l.values[k] = Value{Key: k, Value: s.value, Origin: Origin{Layer: LayerEnv, Name: name}}
	}
	return nil
}
