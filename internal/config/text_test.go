package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

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
