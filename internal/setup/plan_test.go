package setup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/config"
)

func TestDecideRun(t *testing.T) {
	t.Parallel()
	ran := &Record{Fingerprint: "f", Result: "r"}
	for _, tt := range []struct {
		name  string
		facts facts
		want  string // "" is to skip
	}{
		{"first", facts{fingerprint: "f"}, "has not run here yet"},
		{"another definition", facts{other: true, fingerprint: "f"}, "definition has changed"},
		{"same", facts{record: ran, fingerprint: "f"}, ""},
		{"inputs", facts{record: ran, fingerprint: "g"}, "what it reads has changed"},
		{"marker there", facts{record: ran, fingerprint: "f", marker: "m", markerThere: true}, ""},
		{"marker gone", facts{record: ran, fingerprint: "f", marker: "m"}, "marker m is not there"},
		{"outputs as they were", facts{record: ran, fingerprint: "f", observed: 1, matches: 2, result: "r"}, ""},
		{"outputs changed", facts{record: ran, fingerprint: "f", observed: 1, matches: 2, result: "s"}, "what it created has changed"},
		{"outputs gone", facts{record: ran, fingerprint: "f", observed: 1, result: "r"}, "what it creates is not there"},
		{"inputs before outputs", facts{record: ran, fingerprint: "g", observed: 1}, "what it reads has changed"},
	} {
		apply, why := decideRun(tt.facts)
		if apply != (tt.want != "") || !strings.Contains(why, tt.want) || why == "" {
			t.Errorf("%s: %t, %q", tt.name, apply, why)
		}
	}
}

func TestDecideFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		there *target
		want  string
	}{
		{"absent", nil, "not there"},
		{"same", &target{0o600, "s"}, ""},
		{"content", &target{0o600, "x"}, "content"},
		{"mode", &target{0o644, "s"}, "mode is 0644, not 0600"},
		{"a link", &target{fs.ModeSymlink | 0o777, ""}, "something else"},
		{"a folder", &target{fs.ModeDir | 0o600, ""}, "something else"},
	} {
		apply, why := decideFile(0o600, "s", tt.there)
		if apply != (tt.want != "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %t, %q", tt.name, apply, why)
		}
	}
}

func TestDecideInput(t *testing.T) {
	t.Parallel()
	put := &Record{Fingerprint: "f", Result: "r"}
	for _, tt := range []struct {
		name  string
		facts inputFacts
		want  string
	}{
		{"absent", inputFacts{sum: "f"}, "not there"},
		{"gone", inputFacts{record: put, sum: "f"}, "not there"},
		{"something else", inputFacts{sum: "f", there: true}, "something else"},
		{"same", inputFacts{record: put, sum: "f", there: true, result: "r"}, ""},
		{"source", inputFacts{record: put, sum: "g", there: true, result: "r"}, "source has changed"},
		{"target", inputFacts{record: put, sum: "f", there: true, result: "s"}, "it has changed"},
	} {
		apply, why := decideInput(tt.facts)
		if apply != (tt.want != "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %t, %q", tt.name, apply, why)
		}
	}
}

// TestDefinitionsDiffer holds that no two commands that do different things have
// one fingerprint, however their words are cut.
func TestDefinitionsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	list := []config.SetupRun{
		{Command: "a"},
		{Command: "a", Shell: true},
		{Command: "a", Args: []string{""}},
		{Command: "a", Args: []string{"b", "c"}},
		{Command: "a", Args: []string{"b c"}},
		{Command: "a", Args: []string{"bc"}},
		{Command: "ab", Args: []string{"c"}},
		{Command: "a b", Args: []string{"c"}},
		{Command: "a", Env: map[string]string{"b": "c"}},
		{Command: "a", Env: map[string]string{"bc": ""}},
		{Command: "a", Env: map[string]string{"b": "c", "d": "e"}},
		{Command: "a", Env: map[string]string{"b": "cde"}},
		{Command: "a", Dir: "b"},
		{Command: "a", Salt: "b"},
		{Command: "a", Marker: "b"},
		{Command: "a", Observed: []string{"b"}},
		{Command: "a", FingerprintInputs: []string{"b"}},
		{Command: "a", FingerprintInputs: []string{"b", ""}},
	}
	for i, r := range list {
		d := (&command{SetupRun: r}).definition()
		if j, ok := seen[d]; ok {
			t.Errorf("%+v and %+v are one", list[j], r)
		}
		seen[d] = i
	}
	a, b := command{SetupRun: config.SetupRun{Command: "a", Timeout: 1}}, command{SetupRun: config.SetupRun{Command: "a", Optional: true}}
	if a.definition() != b.definition() {
		t.Error("a time limit or being optional makes another command")
	}
}

// TestDigest holds what counts of a folder: names, contents, permission bits and
// links, and nothing of git's.
func TestDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sum := func(patterns ...string) (string, int) {
		s, n, err := digest(t.Context(), root, patterns)
		if err != nil {
			t.Fatal(err)
		}
		return s, n
	}
	write("d/a", "1")
	write("d/.hidden", "2")
	write("d/sub/b.go", "3")
	write("other", "4")
	first, n := sum("d")
	if n != 5 { // the folder, two files, a folder and its file
		t.Errorf("%d matches", n)
	}
	if _, n := sum("**/*.go"); n != 1 {
		t.Errorf("%d go files", n)
	}
	if _, n := sum("nothing"); n != 0 {
		t.Errorf("%d of nothing", n)
	}
	same := func(what string, want bool) {
		t.Helper()
		if now, _ := sum("d"); (now == first) != want {
			t.Errorf("%s: same is %t", what, !want)
		} else if !want {
			first = now
		}
	}
	write("other", "5")
	same("a file beside it", true)
	write("d/.git/config", "6")
	same("git's", true)
	write("d/a", "9")
	same("content", false)
	if err := os.Chmod(filepath.Join(dir, "d/a"), 0o755); err != nil {
		t.Fatal(err)
	}
	same("permission", false)
	if err := os.Rename(filepath.Join(dir, "d/a"), filepath.Join(dir, "d/c")); err != nil {
		t.Fatal(err)
	}
	same("a name", false)
	if err := os.Symlink("/etc", filepath.Join(dir, "d/l")); err != nil {
		t.Fatal(err)
	}
	same("a link", false)
	if err := os.RemoveAll(filepath.Join(dir, "d/sub")); err != nil {
		t.Fatal(err)
	}
	same("a folder that is gone", false)
}
