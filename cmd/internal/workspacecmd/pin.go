package workspacecmd

import (
	"context"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/registry"
)

// Pin keeps cleanup away from a session.
type Pin struct{ app.SessionFlag }

// Run prints nothing but a note.
func (c *Pin) Run(ctx context.Context, a *app.App) error { return pin(ctx, a, c.Ref(a), true) }

// Unpin lets cleanup at it again.
type Unpin struct{ app.SessionFlag }

// Run prints nothing but a note.
func (c *Unpin) Run(ctx context.Context, a *app.App) error {
	return pin(ctx, a, c.Ref(a), false)
}

type pinnedJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Pinned        bool                `json:"pinned"`
}

func pin(ctx context.Context, a *app.App, ref string, pinned bool) error {
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	id, err := registry.Pin(ctx, m.Host, a.Flags.Repo, ref, pinned)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(pinnedJSON{1, id, pinned})
	}
	if pinned {
		a.Note("%s is pinned: cleanup will not remove it", id)
	} else {
		a.Note("%s is no longer pinned", id)
	}
	return nil
}
