package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// TestEveryLeafHasAScript compares the parser's leaves with the scripts: a
// command is covered when a script runs "superqode <command>".
func TestEveryLeafHasAScript(t *testing.T) {
	t.Parallel()
	parser, err := newParser(app.New(app.IO{}), "", "")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		lines = append(lines, strings.Split(script, "\n")...)
	}
	leaves := parser.Model.Leaves(true)
	if len(leaves) < 15 {
		t.Fatalf("%d leaves only", len(leaves))
	}
	for _, leaf := range leaves {
		if call := "superqode " + commandName(leaf); !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l+" ", call+" ") }) {
			t.Errorf("no script runs %q", call)
		}
	}
}

// TestHelpText compares the names in help.txt with the commands.
func TestHelpText(t *testing.T) {
	t.Parallel()
	parser, err := newParser(app.New(app.IO{}), "", "")
	if err != nil {
		t.Fatal(err)
	}
	described := 0
	for _, leaf := range parser.Model.Leaves(true) {
		if leaf.Detail != "" {
			described++
		}
	}
	if n := strings.Count("\n"+helpText, "\n== "); n != described || n < 20 {
		t.Errorf("%d texts for %d commands", n, described)
	}
}

func TestCommandWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args      string
		word, sub string
	}{
		{"", "", ""},
		{"version", "version", ""},
		{"-C /x version", "version", ""},
		{"-q -v --json --home=/h workspace list", "workspace", "list"},
		{"--repo /a --color never run -- x", "run", "--"},
		{"--help", "", ""},
		{"--bogus run", "", ""},
		{"-- run", "", ""},
		{"-qC /x run", "", ""},
	} {
		if word, sub := commandWords(strings.Fields(tt.args)); word != tt.word || sub != tt.sub {
			t.Errorf("%q: got %q, %q", tt.args, word, sub)
		}
	}
}
