package cli

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// helpText has what the help of a command says below its synopsis: a line "== COMMAND", then the
// text.
//
//go:embed help.txt
var helpText string

// describe adds these texts to the grammar. A test compares their names with the commands.
func describe(model *kong.Node) {
	texts := map[string]string{}
	for part := range strings.SplitSeq("\n"+helpText, "\n== ") {
		name, text, _ := strings.Cut(part, "\n")
		texts[name] = strings.ReplaceAll(strings.TrimSpace(text), "\n", " ")
	}
	_ = kong.Visit(model, func(v kong.Visitable, next kong.Next) error { // nothing here fails
		if n, ok := v.(*kong.Node); ok && n.Parent != nil {
			n.Detail = texts[commandName(n)]
		}
		return next(nil)
	})
}

// commandName is the words of a command: "workspace apply".
func commandName(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Parent == nil {
		return n.Name
	}
	return commandName(n.Parent) + " " + n.Name
}
