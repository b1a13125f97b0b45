package workspacecmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/radar"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Conflicts asks the radar.
type Conflicts struct {
	Session string `predictor:"session" short:"s" placeholder:"ID" help:"Only conflicts that involve this session."`
}

// Run prints one line a conflict.
func (c *Conflicts) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	list, err := radar.Look(ctx, m.Host, a.Flags.Repo)
	if err != nil {
		return err
	}
	if c.Session != "" {
		l, err := m.Find(ctx, a.Flags.Repo, c.Session)
		if err != nil {
			return err
		}
		list = radar.ConflictsOf(list, l.ID)
	}
	if a.Flags.JSON {
		err = a.PrintFields("conflicts", list)
	} else {
		err = printConflicts(a, list)
	}
	if err == nil && len(list) > 0 {
		err = superqode.Errorf(superqode.ErrConflict, "changes in open workspaces would conflict")
	}
	if len(list) == 0 {
		a.Note("no conflicts")
	}
	return err
}

// printConflicts prints a table of what would conflict.
func printConflicts(a *app.App, list []radar.Conflict) error {
	if len(list) == 0 {
		return nil
	}
	header := []string{"CONFLICT", "WITH", "KIND", "LINES", "PATH"}
	return a.Table(header, app.Rows(list, func(c radar.Conflict) []string {
		path := text.QuotePath(c.Path.String())
		return []string{sideName(c.A), sideName(c.B), string(c.Kind), linesText(c.Lines), path}
	}))
}

// sideName is a session's short id, and the agent.
func sideName(s radar.Side) string {
	name := app.ShortID(s.Session)
	if !s.Agent.IsZero() {
		name += "/" + s.Agent.String()
	}
	return name
}

// linesText prints ranges of lines as "3, 7-9".
func linesText(list []merge.LineRange) string {
	var out []string
	for _, r := range list {
		switch {
		case r.End < r.Start:
			out = append(out, fmt.Sprintf("after %d", r.End))
		case r.End == r.Start:
			out = append(out, fmt.Sprint(r.Start))
		default:
			out = append(out, fmt.Sprintf("%d-%d", r.Start, r.End))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "-")
}
