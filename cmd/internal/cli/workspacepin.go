package cli

import (
	"context"

	"github.com/seed-2d964004/superqode"
)

// workspacePinCmd keeps cleanup away from a session.
type workspacePinCmd struct{ sessionFlag }

// Run prints nothing but a note.
func (c *workspacePinCmd) Run(ctx context.Context, a *app) error { return a.pin(ctx, c.ref(a), true) }

// workspaceUnpinCmd lets cleanup at it again.
type workspaceUnpinCmd struct{ sessionFlag }

// Run prints nothing but a note.
func (c *workspaceUnpinCmd) Run(ctx context.Context, a *app) error {
	return a.pin(ctx, c.ref(a), false)
}

type pinnedJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Pinned        bool                `json:"pinned"`
}

func (a *app) pin(ctx context.Context, ref string, pinned bool) error {
	m, err := a.sessions()
	if err != nil {
		return err
	}
	id, err := m.Pin(ctx, a.flags.Repo, ref, pinned)
	if err != nil {
		return err
	}
	if a.flags.JSON {
		return a.printJSON(pinnedJSON{1, id, pinned})
	}
	if pinned {
		a.note("%s is pinned: cleanup spares it", id)
	} else {
		a.note("%s is not pinned", id)
	}
	return nil
}
