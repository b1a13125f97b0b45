package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"text/template"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// TerminalOptions say how a summary is printed.
type TerminalOptions struct {
	Self  string                       // how superqode is called for the origin, quoted
	Dir   string                       // where the reader stands: below the origin, files there have paths from it
	Paint func(s, color string) string // colour is a parameter of SGR; nil paints nothing
}

// maxTerminalRows is how many changes, and conflicts, the summary lists; the rest
// is counted.
const maxTerminalRows = 6

// terminal is what the template of the summary shows.
type terminal struct {
	*View
	Idle  bool
	Limit string
	Width int // of the agents' names
	Found string

	Included []superqode.HostPath
	Active,
	LastBlocked []string
}

// Terminal prints the block that ends a session: what changed, what was blocked,
// what was checked, where things are and what can be done next.
func Terminal(w io.Writer, res *artifacts.Result, opt TerminalOptions) error {
	paint := opt.Paint
	if paint == nil {
		paint = func(s, _ string) string { return s }
	}
	rep := artifacts.NewReport(artifacts.ReportInput{Result: *res})
	rep.Summary = res.Found
	t := terminal{Idle: res.Idle, Limit: res.Limit, Included: res.Included}
	t.View = NewView(rep, Caller{Self: opt.Self, Dir: opt.Dir})
	t.Active, _ = Layers(res.Guard.Layers)
	if n := len(res.Guard.Blocked); n > 0 {
		t.LastBlocked = res.Guard.Blocked[n-1].Command
	}
	for _, a := range res.Agents {
		t.Width = max(t.Width, len(a.Agent.String()))
	}
	t.Found = res.Found.BySeverity.Text()
	switch s := res.Found.BySeverity; {
	case s.Critical > 0:
		t.Found = paint(t.Found, "31")
	case s.High > 0:
		t.Found = paint(t.Found, "33")
	case t.Found == "" && res.Found.Suppressed > 0:
		t.Found = "nothing that counts"
	}
	if n := res.Found.Suppressed; n > 0 {
		t.Found += fmt.Sprintf(" (%d suppressed)", n)
	}
	tmpl, err := terminalTemplate()
	if err != nil {
		return fmt.Errorf("print summary: %w", err)
	}
	color := func(c string) func(string) string { return func(s string) string { return paint(s, c) } }
	tmpl, err = tmpl.Clone()
	if err != nil {
		return fmt.Errorf("print summary: %w", err)
	}
	tmpl.Funcs(template.FuncMap{
		"red": color("31"), "green": color("32"), "yellow": color("33"), "bold": color("1"),
		"stored": func(name string) string {
			path := filepath.Join(res.Origin, ".superqode", "qe-artifacts", name)
			if inside, err := filepath.Rel(res.Origin, opt.Dir); err == nil && filepath.IsLocal(inside) {
				path, _ = filepath.Rel(opt.Dir, path) // both are absolute
			}
			return text.QuotePath(path)
		},
	})
	return execute(w, tmpl, t)
}

// terminalTemplate reads the template when the first summary is printed.
var terminalTemplate = sync.OnceValues(func() (*template.Template, error) {
	same := func(s string) string { return s }
	return template.New("terminal.tmpl").Funcs(words(maxTerminalRows)).Funcs(template.FuncMap{
		"red": same, "green": same, "yellow": same, "bold": same, "stored": same, // set for each summary
		"path": ofAny(text.QuotePath), "printable": text.Printable[string],
		"some": func(list []string) string {
			said := strings.Join(list[:min(3, len(list))], "; ")
			if more := len(list) - 3; more > 0 {
				said += fmt.Sprintf(" and %d more", more)
			}
			return said
		},
	}).ParseFS(assets, "assets/terminal.tmpl")
})

// CountChanges is how many paths and lines of a session changed, in one line.
func CountChanges(res *artifacts.Result) string {
	v := NewView(artifacts.NewReport(artifacts.ReportInput{Result: *res}), Caller{})
	return fmt.Sprintf("%s (+%d -%d)", text.Plural(len(v.Changes), "path"), v.Added, v.Removed)
}
