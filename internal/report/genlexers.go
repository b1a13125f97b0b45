//go:build ignore

// Genlexers writes the lexers that reports are highlighted with into
// assets/lexers: run "go generate ./report" after an update of chroma.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// names are chroma's names of the languages; everything else stays uncoloured.
var names = strings.Split("ApacheConf Awk Bash Batchfile C C# C++ Clojure CMake CSS CSV Dart Diff Docker Elixir Erlang Fish FSharp GDScript3 Gherkin GLSL Go "+
	"GraphQL Groovy Haskell HCL HTML INI Java JavaScript JSON Julia Kotlin Lua Makefile markdown Meson MySQL Nix Objective-C OCaml Perl PowerShell properties "+
	"PHP Python R react Ruby Rust Sass Scala SCSS Solidity SQL Swift SYSTEMD Tcl Terraform TOML TypeScript VimL vue XML YAML Zig", " ")

func main() {
	names = append(names, "Protocol Buffer", "Nginx configuration file", "Standard ML")
	for _, name := range names {
		data, err := chroma.Marshal(table(name))
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		file := strings.NewReplacer(" ", "_", "#", "sharp", "+", "p").Replace(strings.ToLower(name)) + ".xml"
		if err := os.WriteFile(filepath.Join("assets", "lexers", file), append(data, '\n'), 0o644); err != nil {
			fail(err)
		}
	}
}

// table returns a lexer as a table of rules, which alone can be written as XML.
func table(name string) *chroma.RegexLexer {
	lexer := lexers.Get(name)
	if wrapped := reflect.ValueOf(lexer).Elem().FieldByName("Lexer"); wrapped.IsValid() { // Markdown: a lexer around it does the front matter
		lexer = wrapped.Interface().(chroma.Lexer)
	}
	plain, ok := lexer.(*chroma.RegexLexer)
	if !ok {
		fail(fmt.Errorf("the lexer %q is no table of rules", name))
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

func fail(err error) {
	fmt.Fprintln(os.Stderr, "genlexers:", err)
	os.Exit(1)
}
