package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
)

// schemaFile is what editors are pointed to.
const schemaFile = "../../docs/superqode.schema.json"

var update = flag.Bool("update", false, "write "+schemaFile)

func TestSchemaFileIsFresh(t *testing.T) {
	t.Parallel()
	if *update {
		if err := os.WriteFile(schemaFile, config.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(config.Schema()), string(got)); d != "" {
		t.Errorf("stale; run go test ./internal/config -update\n%s", d)
	}
}

// TestSchemaKnowsEveryKey holds that the schema has each key that Load accepts,
// with its default.
func TestSchemaKnowsEveryKey(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var at func(s map[string]any, key string) map[string]any
	at = func(s map[string]any, key string) map[string]any {
		m := regexp.MustCompile(`^([^.]+)\.?(.*)$`).FindStringSubmatch(key)
		if m == nil {
			return s
		}
		props, _ := s["properties"].(map[string]any)
		next, ok := props[m[1]].(map[string]any)
		if !ok {
			t.Fatalf("schema lacks %s", key)
		}
		return at(next, m[2])
	}
	for _, v := range load(t, config.Sources{}).Values() {
		b, err := json.Marshal(v.Value)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, at(schema, v.Key)["default"]); d != "" {
			t.Errorf("%s: %s", v.Key, d)
		}
	}
}

// TestSchemaAcceptsWhatLoadAccepts holds it for these, and for each configuration of
// the scripts and of the guides.
func TestSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	t.Parallel()
	samples := []string{
		"", "workspace:\n", "limits: {memory: '', timeout: , pids: , collect_timeout: ''}", "guard: {enforce: , allow: }",
		"setup: [{run: {command: x, args: [''], env: {A: '', B: 1, C: true}, salt: '', optional: , timeout: +1.5h}}]",
		"setup: [{file: {target: a, content: '', from: , mode: 0600}}, {file: {target: 5, content: 1.5, mode: }}]",
		"setup: [{run: {command: 7, timeout: 90, cwd: ., args: }}]", "inputs: [{from: a, to: , mode: , read_only: }]",
		"agents: {a: 1}", "artifacts: {outputs: [1]}", "limits: {memory: 1024, timeout: 90}",
	}
	accepted := len(samples)
	for _, s := range samples {
		if !fitsIfLoaded(t, s) {
			t.Errorf("not accepted: %s", s)
		}
	}
	scripts, err := filepath.Glob("../../cmd/internal/cli/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if filepath.Ext(f.Name) == ".yaml" && fitsIfLoaded(t, string(f.Data)) {
				accepted++
			}
		}
	}
	guides, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		data, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			if fitsIfLoaded(t, block[1]) {
				accepted++
			}
		}
	}
	if accepted < 40 {
		t.Errorf("only %d configurations were compared", accepted)
	}
}

// fitsIfLoaded reports whether Load accepts a configuration; then the schema has to.
func fitsIfLoaded(t *testing.T, text string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "superqode.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(t.Context(), config.Sources{File: file}); err != nil {
		return false
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("%s\n%v", text, err)
	}
	return true
}

// TestInit holds that a new file changes nothing, and that it still changes
// nothing when every default in it is uncommented.
func TestInit(t *testing.T) {
	t.Parallel()
	text := config.Init()
	c := load(t, layers(t, map[string]string{"origin": text}))
	if got := origins(c); len(got) != 0 {
		t.Errorf("sets %v", got)
	}
	all := regexp.MustCompile(`(?m)^( *)#([a-z_]+: .*)$`).ReplaceAllString(text, "$1$2")
	c = load(t, layers(t, map[string]string{"origin": all}))
	for i, v := range load(t, config.Sources{}).Values() {
		got := c.Values()[i]
		if v.Key != got.Key || cmp.Diff(v.Value, got.Value) != "" || got.Origin.Layer != config.LayerOrigin {
			t.Errorf("%s is %v from %s, default %v", got.Key, got.Value, got.Origin, v.Value)
		}
	}
}

func TestValueText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"auto", "auto"}, {"", `""`}, {"a b", `"a b"`}, {"*.pyc", `"*.pyc"`}, {int64(5), "5"}, {true, "true"}, {[]any{"a", ".git/**"}, `["a",".git/**"]`}, {map[string]any{}, "{}"},
	} {
		if got := (config.Value{Value: tt.value}).Text(); got != tt.want {
			t.Errorf("%v is %s, want %s", tt.value, got, tt.want)
		}
	}
}

func TestValueJSON(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{"origin": "workspace:\n  default_mode: shared\n"})
	for _, v := range load(t, src).Values() {
		if v.Key != "workspace.default_mode" {
			continue
		}
		b, err := json.Marshal(v)
		want := `{"key":"workspace.default_mode","value":"shared","layer":"superqode.yaml","name":"` + src.OriginDir + `/superqode.yaml","line":2,"used":true}`
		if err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
}

// TestModesAreTheHouses holds that the choices are the shared list of modes.
func TestModesAreTheHouses(t *testing.T) {
	t.Parallel()
	for _, m := range superqode.Modes() {
		c := load(t, config.Sources{Flags: map[string][]string{"workspace.default_mode": {string(m)}}})
		if c.Workspace.DefaultMode != m {
			t.Errorf("%s became %s", m, c.Workspace.DefaultMode)
		}
	}
}
