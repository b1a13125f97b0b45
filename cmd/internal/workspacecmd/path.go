package workspacecmd

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Path prints where a session works.
type Path struct{ app.SessionFlag }

// Run prints one line.
func (c *Path) Run(ctx context.Context, a *app.App) error {
	l, err := c.Find(ctx, a)
	if err != nil {
		return err
	}
	if l.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", l.ID)
	}
	if a.Flags.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int                 `json:"schema_version"`
			SessionID     superqode.SessionID `json:"session_id"`
			Workspace     app.WorkspaceJSON   `json:"workspace"`
		}{1, l.ID, app.WorkspaceJSON{Path: l.Workspace}})
	}
	path := string(l.Workspace)
	if a.OutTTY {
		path = text.QuotePath(path)
	}
	_, err = fmt.Fprintln(a.Out, path)
	return err
}
