package report

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

var update = flag.Bool("update", false, "write the lexers in assets anew from those of chroma")

// lexerNames are chroma's names of the languages; everything else stays without
// colours.
var lexerNames = append(strings.Split("ApacheConf Awk Bash Batchfile C C# C++ Clojure CMake CSS CSV Dart Diff Docker Elixir Erlang Fish FSharp GDScript3 Gherkin GLSL Go "+
	"GraphQL Groovy Haskell HCL HTML INI Java JavaScript JSON Julia Kotlin Lua Makefile markdown Meson MySQL Nix Objective-C OCaml Perl PowerShell properties "+
	"PHP Python R react Ruby Rust Sass Scala SCSS Solidity SQL Swift SYSTEMD Tcl Terraform TOML TypeScript VimL vue XML YAML Zig", " "),
	"Protocol Buffer", "Nginx configuration file", "Standard ML")

// TestLexers holds assets/lexers to what chroma has.
func TestLexers(t *testing.T) {
	t.Parallel()
	for _, name := range lexerNames {
		data, err := chroma.Marshal(lexerTable(t, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data = append(data, '\n')
		path := filepath.Join("assets", "lexers", strings.NewReplacer(" ", "_", "#", "sharp", "+", "p").Replace(strings.ToLower(name))+".xml")
		if *update {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || sortedLines(have) != sortedLines(data) {
			t.Errorf("%s is stale: go test ./internal/report -run TestLexers -update (%v)", path, err)
		}
	}
}

// sortedLines makes texts alike whose states, which are a map, were written in
// another order.
func sortedLines(data []byte) string {
	return strings.Join(slices.Sorted(strings.Lines(string(data))), "")
}

// lexerTable returns a lexer as a table of rules, which alone can be written as XML.
func lexerTable(t *testing.T, name string) *chroma.RegexLexer {
	lexer := lexers.Get(name)
	if wrapped := reflect.ValueOf(lexer).Elem().FieldByName("Lexer"); wrapped.IsValid() { // Markdown: a lexer around it does the front matter
		lexer = wrapped.Interface().(chroma.Lexer)
	}
	plain, ok := lexer.(*chroma.RegexLexer)
	if !ok {
		t.Fatalf("the lexer %q is no table of rules", name)
	}
	switch name {
	case "Go": // raw strings are templates to chroma
		rules := plain.MustRules().Clone()
		for i, r := range rules["root"] {
			if strings.HasPrefix(r.Pattern, "(`)") {
				rules["root"][i] = chroma.Rule{Pattern: "`[^`]*`", Type: chroma.LiteralString}
			}
		}
		return chroma.MustNewLexer(plain.Config(), func() chroma.Rules { return rules })
	case "PHP": // chroma gives the names to the lexer of PHP in HTML
		plain.Config().Filenames = []string{"*.php", "*.phtml", "*.inc"}
	}
	return plain
}

// TestMatchLexer: names are matched as chroma does, but for names of backups.
func TestMatchLexer(t *testing.T) {
	t.Parallel()
	names := []string{"", "x", "Makefile.am.x", ".go", "a.tar.gz", "noext."}
	for _, l := range loadLexers().Lexers {
		for _, glob := range l.Config().Filenames {
			names = append(names, strings.NewReplacer("*", "some", "[bp]", "b").Replace(glob))
		}
	}
	for _, name := range names {
		want, got := loadLexers().Match(name), matchLexer(name)
		if (want == nil) != (got == nil) || got != nil && got.Config().Name != want.Config().Name {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
