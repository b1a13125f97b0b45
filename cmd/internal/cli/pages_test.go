package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// TestPages checks that the grammar accepts every superqode command line that
// README.md and the pages of docs/ show, in code blocks and in running text.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, page := range append(pages, "../../../README.md") {
		if filepath.Base(page) == "reference.md" { // it is made from the grammar
			continue
		}
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shownCommands(string(data)) {
			total++
			args := shownArgs(t, line)
			parser, err := newParser(app.New(app.IO{Out: io.Discard, Err: io.Discard}), args[0], strings.Join(args[1:min(2, len(args))], ""))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(page), line, err)
			}
		}
	}
	if total < 100 {
		t.Errorf("only %d command lines were found", total)
	}
}

// shownCommands returns what a page shows as superqode's command lines: lines of
// code blocks that begin with it, and inline code that does, without what names
// a choice or leaves something out.
func shownCommands(page string) []string {
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^(?: {4,}|\$ |- run: | *run: )?(superqode .*)$`).FindAllStringSubmatch(page, -1) {
		if line := m[1]; !strings.ContainsAny(line, "…[") && !strings.HasPrefix(line, "superqode: ") && !strings.Contains(line, "`") && isCommand(line) {
			lines = append(lines, line)
		}
	}
	for _, m := range regexp.MustCompile("`(superqode [^`]*)`").FindAllStringSubmatch(page, -1) {
		if line := strings.Join(strings.Fields(m[1]), " "); !strings.ContainsAny(line, "…|[") {
			lines = append(lines, line)
		}
	}
	return lines
}

// isCommand tells a command line from a sentence that begins with superqode's
// name: the next word is one of its commands or a flag.
func isCommand(line string) bool {
	word := strings.Fields(line)[1]
	for _, c := range commands() {
		if c.name == word {
			return !regexp.MustCompile(`^superqode \w+ (a|the|it|and|or|is) `).MatchString(line)
		}
	}
	return strings.HasPrefix(word, "-")
}

// shownArgs splits a line as a shell would, without comments and redirections.
func shownArgs(t *testing.T, line string) []string {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	var args []string
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || args != nil {
			return args == nil
		}
		words, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(func(name string) string { return "/" + name })}, call.Args...)
		if err != nil {
			t.Errorf("%q: %v", line, err)
			return false
		}
		args = words[1:]
		return false
	})
	return args
}
