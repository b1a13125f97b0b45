package workspacecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
)

// Recover finishes what a crash left.
type Recover struct{ app.SessionFlag }

type recoveredJSON struct {
	SessionID superqode.SessionID `json:"session_id"`
	Action    string              `json:"action"`
	Error     string              `json:"error"`
}

// Run prints one line for each session that had died.
func (c *Recover) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	done, err := m.Recover(ctx, a.Flags.Repo, c.Session)
	if err != nil {
		return err
	}
	rows, failed := []recoveredJSON{}, error(nil)
	for _, r := range done {
		row := recoveredJSON{r.ID, r.Action, ""}
		if r.Err != nil {
			row.Error = r.Err.Error()
			failed = errors.Join(failed, fmt.Errorf("recover session %s: %w", r.ID, r.Err))
		}
		rows = append(rows, row)
		if !a.Flags.JSON {
			fmt.Fprintf(a.Out, "%s\t%s\n", r.ID, r.Action)
		}
	}
	if len(rows) == 0 {
		a.Note("nothing to recover")
	}
	if a.Flags.JSON {
		if err := a.PrintJSON(struct {
			SchemaVersion int             `json:"schema_version"`
			Recovered     []recoveredJSON `json:"recovered"`
		}{1, rows}); err != nil {
			return err
		}
	}
	return failed
}
