package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// helpText has what the help of a command says below its synopsis: a line "== COMMAND", then the
// text, then examples, which are indented.
//
//go:embed help.txt
var helpText string

// helpFlags are the flags that --help shows of the commands with many, with the first
// sentence of each; --help-all shows every one, and all that it says.
var helpFlags = map[string][]string{
	"run": {
		"mode", "git-snapshot", "from", "include", "name", "agent", "keep", "no-revert", "output", "report", "timeout",
		"env", "memory", "no-network", "dry-run",
	},
	"workspace create": {"mode", "from", "include", "name", "agent", "keep", "dry-run"},
	"workspace exec":   {"session", "agent", "detach", "stdin", "timeout", "env", "lang", "code-file", "memory", "no-network"},
	"finding add":      {"session", "severity", "title", "file", "line", "description", "patch"},
}

// helpPrinter prints to stdout and ends the parse, so that nothing after --help is
// looked at. Of a command it shows its own flags.
func helpPrinter(a *app.App) kong.HelpPrinter {
	return func(options kong.HelpOptions, kctx *kong.Context) error {
		node := kctx.Selected()
		if node == nil {
			options.NoExpandSubcommands, options.FlagsLast = true, true
		}
		hidden := 0
		if node != nil && node.Leaf() && !a.HelpAll {
			few, long := helpFlags[commandName(node)]
			for _, flags := range node.AllFlags(true) {
				for _, f := range flags {
					if own := slices.Contains(node.Flags, f); f.Name != "help" && (!own || long && !slices.Contains(few, f.Name)) {
						f.Hidden = true
						hidden++
					} else if first, _, more := strings.Cut(f.Help, ". "); long && more {
						f.Help = first + "."
					}
				}
			}
		}
		if err := kong.DefaultHelpPrinter(options, kctx); err != nil {
			return err
		}
		if node == nil {
			return errHelp
		}
		if _, examples := helpOf(commandName(node)); examples != "" {
			fmt.Fprintf(kctx.Stdout, "\nExamples:\n%s\n", examples)
		}
		if hidden > 0 {
			fmt.Fprintf(kctx.Stdout, "\nEvery flag: superqode %s --help-all\n", commandName(node))
		}
		return errHelp
	}
}

// describe adds these texts to the grammar. A test compares their names with the commands.
func describe(model *kong.Node) {
	_ = kong.Visit(model, func(v kong.Visitable, next kong.Next) error { // nothing here fails
		if n, ok := v.(*kong.Node); ok && n.Parent != nil {
			n.Detail, _ = helpOf(commandName(n))
		}
		return next(nil)
	})
}

// helpOf returns what helpText says of a command.
func helpOf(name string) (detail, examples string) {
	_, text, _ := strings.Cut("\n"+helpText, "\n== "+name+"\n")
	text, _, _ = strings.Cut(text, "\n== ")
	detail, examples, _ = strings.Cut(strings.TrimSpace(text), "\n\n    ")
	if examples != "" {
		examples = "    " + examples
	}
	return strings.ReplaceAll(detail, "\n", " "), examples
}

// commandName is the words of a command: "workspace apply".
func commandName(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Parent == nil {
		return n.Name
	}
	return commandName(n.Parent) + " " + n.Name
}
