// Package trust remembers which commands of an origin's committed configuration a
// person lets run, by one digest over the commands and the files that they name.
package trust

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Grant is what a person lets the files of one origin run, as one digest: that
// of the commands and of the files in the origin that they name.
type Grant struct {
	Origin   state.HostPath   `json:"origin"` // links resolved
	Digest   superqode.Digest `json:"digest"`
	Commands []Command        `json:"commands"`
	Files    []string         `json:"files"`  // of the origin, relative; printable
	Writes   []string         `json:"writes"` // what the setup writes first, in the workspace; printable
	At       time.Time        `json:"trusted_at"`
}

// Command is one command of a Grant.
type Command struct {
	Key  string `json:"key"`
	Line string `json:"command"`
	From string `json:"from"` // file and line
}

// grants is $SUPERQODE_HOME/trust.json. The kernel layer keeps sessions'
// programs out of that folder.
type grants struct {
	SchemaVersion int     `json:"schema_version"`
	Origins       []Grant `json:"origins"`
}

func path(m *site.Host) string { return filepath.Join(m.Home, "trust.json") }

func read(m *site.Host) (grants, error) {
	f := grants{SchemaVersion: state.SchemaVersion, Origins: []Grant{}}
	data, err := atomicfile.Read(path(m))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path(m), err)
	}
	if f.SchemaVersion > state.SchemaVersion {
		return f, fmt.Errorf("%s has schema_version %d, this superqode knows %d", path(m), f.SchemaVersion,
			state.SchemaVersion)
	}
	return f, nil
}

// changeTrust changes trust.json under its lock.
func change(ctx context.Context, m *site.Host, change func([]Grant) []Grant) (err error) {
	if err := os.MkdirAll(m.Home, 0o700); err != nil {
		return state.Unwritable(err, m.Home)
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(m.Home, "trust.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f, err := read(m)
	if err != nil {
		return err
	}
	f.Origins = change(f.Origins)
	return atomicfile.WriteJSON(path(m), f)
}

// Trusted returns everything that is trusted.
func Trusted(m *site.Host) ([]Grant, error) {
	f, err := read(m)
	return f.Origins, err
}

// Untrusted returns what a person has to say yes to before the commands of cfg
// may run, or nil. Commands of the user's own file, of variables and of flags
// need nobody's trust; those of superqode.yaml do, and those of
// superqode.local.yaml and --config when git tracks the file in the origin, or
// somebody else owns it; outside of git those of superqode.local.yaml always.
func Untrusted(ctx context.Context, m *site.Host, originDir string, cfg *config.Config) (*Grant, error) {
	t, err := Needed(ctx, m, originDir, cfg)
	if err != nil || t == nil {
		return nil, err
	}
	f, err := read(m)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(f.Origins, func(k Grant) bool { return k.Origin == t.Origin && k.Digest == t.Digest }) {
		return nil, nil
	}
	return t, nil
}

// NeedsTrust returns the commands of cfg that need trust, whether or not they
// have it, or nil where there are none.
func Needed(ctx context.Context, m *site.Host, originDir string, cfg *config.Config) (*Grant, error) {
	real, err := filepath.EvalSymlinks(originDir)
	if err != nil {
		return nil, err
	}
	t := &Grant{Origin: state.HostPath(real), Commands: []Command{}, Files: []string{}, Writes: []string{}}
	h := digester{origin: real, inputs: cfg.Inputs, out: sha256.New()}
	asked := map[string]bool{}
	for _, c := range cfg.Commands() {
		file := c.Origin.Name
		if _, known := asked[file]; !known {
			if asked[file], err = foreign(ctx, m, real, c.Origin); err != nil {
				return nil, err
			}
		}
		if !asked[file] {
			continue
		}
		t.Commands = append(t.Commands, Command{c.Key, c.Line, c.Origin.String()})
		if err := h.command(c); err != nil {
			return nil, err
		}
		for _, f := range c.Writes() {
			if f = text.Printable(f); !slices.Contains(t.Writes, f) {
				t.Writes = append(t.Writes, f)
			}
		}
	}
	if len(t.Commands) == 0 {
		return nil, nil
	}
	for _, f := range h.files {
		t.Files = append(t.Files, text.Printable(f))
	}
	t.Digest = superqode.NewDigest([32]byte(h.out.Sum(nil)))
	return t, nil
}

// foreign reports whether what a file says may be somebody else's words.
func foreign(ctx context.Context, m *site.Host, origin string, o config.Origin) (bool, error) {
	switch o.Layer {
	case config.LayerOrigin:
		return true, nil
	case config.LayerLocal, config.LayerFile:
	default:
		return false, nil
	}
	st, err := os.Stat(o.Name)
	if err != nil {
		return false, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return true, nil
	}
	real, err := filepath.EvalSymlinks(o.Name)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(origin, real)
	if err != nil || !filepath.IsLocal(rel) {
		return false, nil
	}
	g, err := m.Git(ctx)
	if err != nil {
		return true, nil // then nobody can say that it is the user's own
	}
	out, err := g.Output(ctx, git.Cmd{Dir: origin, Args: []string{"ls-files", "-z", "--", ":(literal)" + rel}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit != nil {
		return o.Layer == config.LayerLocal, nil // outside of git nobody can say whether it came with the rest
	}
	return len(out) > 0, err
}

// trustHash hashes commands and the files of the origin that they name, every
// field with its length.
type digester struct {
	origin string
	inputs []config.Input // through them a command may name a file by another path
	out    hash.Hash
	files  []string
}

func (h *digester) field(s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = h.out.Write(n[:]) // a hash never fails
	_, _ = io.WriteString(h.out, s)
}

func (h *digester) list(fields []string) {
	h.field(fmt.Sprint(len(fields)))
	for _, f := range fields {
		h.field(f)
	}
}

// maxTrustScript bounds what is read of one file; a bigger one is no script.
const maxTrustScript = 16 << 20

func (h *digester) command(c config.Command) error {
	h.list(c.Fields())
	dir := ""
	if c.Run != nil {
		dir = c.Run.Dir
	}
	var named []string
	for _, word := range c.Words() {
		for _, path := range h.places(dir, word) {
			rel, sum, err := h.file(path, filepath.IsAbs(word))
			if err != nil {
				return fmt.Errorf("%s: read %s: %w", c.Key, text.Printable(rel), err)
			}
			if rel == "" {
				continue
			}
			named = append(named, rel, sum)
			if !slices.Contains(h.files, rel) {
				h.files = append(h.files, rel)
			}
		}
	}
	h.list(named)
	return nil
}

// places are the paths that a word of a command that starts in dir may mean: one
// in the origin, and where an input would bring it from.
func (h *digester) places(dir, word string) []string {
	if filepath.IsAbs(word) {
		return []string{word}
	}
	rel := filepath.Join(dir, word)
	out := []string{filepath.Join(h.origin, rel)}
	for _, in := range h.inputs {
		if rest, ok := strings.CutPrefix(rel+"/", in.To.String()+"/"); ok && filepath.IsAbs(in.Path) {
			out = append(out, filepath.Join(in.Path, rest))
		}
	}
	return out
}

// file returns the path in the origin and the hash of a file whose contents count,
// "" for one whose do not: what is elsewhere, and data that a command reads. What
// is named by an absolute path, as ./x is by now, counts always.
func (h *digester) file(path string, always bool) (rel, sum string, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", "", nil
	}
	st, err := os.Stat(real)
	rel, rerr := filepath.Rel(h.origin, real)
	if err != nil || rerr != nil || !st.Mode().IsRegular() || st.Size() > maxTrustScript || !filepath.IsLocal(rel) {
		return "", "", nil
	}
	if !always && !config.IsScript(real, st) {
		return "", "", nil
	}
	digest, err := atomicfile.Hash(real)
	return rel, hex.EncodeToString(digest[:]), err
}

// Approve records a person's yes. From inside a session it is refused with an
// error that wraps superqode.ErrDenied.
func Approve(ctx context.Context, m *site.Host, t *Grant) error {
	if err := OnlyOutside(m, "let commands run"); err != nil {
		return err
	}
	yes := *t
	yes.At = m.Now().UTC()
	return change(ctx, m, func(list []Grant) []Grant {
		return append(slices.DeleteFunc(list, func(k Grant) bool { return k.Origin == t.Origin }), yes)
	})
}

// Revoke takes back what was said of one origin, or of all ("").  It returns what
// was trusted.
func Revoke(ctx context.Context, m *site.Host, originDir string) ([]Grant, error) {
	if originDir != "" {
		if real, err := filepath.EvalSymlinks(originDir); err == nil {
			originDir = real
		}
	}
	var gone []Grant
	err := change(ctx, m, func(list []Grant) []Grant {
		return slices.DeleteFunc(list, func(k Grant) bool {
			match := originDir == "" || string(k.Origin) == originDir
			if match {
				gone = append(gone, k)
			}
			return match
		})
	})
	return gone, err
}

// OnlyOutside refuses, with an error that wraps superqode.ErrDenied, what only a
// person outside of every session may do.
func OnlyOutside(m *site.Host, what string) error {
	names, err := state.Names(m.WorkingPath())
	if err != nil {
		return err
	}
	for _, name := range names {
		if id := supervisor.InsideOf(state.Project{Dir: filepath.Join(m.WorkingPath(), name)}); id != "" {
			return superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
				"this runs inside session %s, and only a person outside of it can %s", id, what), "ask the user")
		}
	}
	return nil
}
