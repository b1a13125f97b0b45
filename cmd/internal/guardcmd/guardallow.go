package guardcmd

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Allow lets one operation through.
type Allow struct {
	app.SessionFlag
	Once string `required:"" placeholder:"OPERATION" help:"The operation to permit once: commit, reset.hard, … (see guard status --operations)."`
	Yes  bool   `short:"y" help:"Do not ask for confirmation. For your own scripts outside of the session."`
}

// Run asks the person and tells the session's supervisor.
func (c *Allow) Run(ctx context.Context, a *app.App) error {
	if c.Session == "" && guardsRepository(ctx, a) {
		return allowInRepository(ctx, a, guard.Operation(c.Once))
	}
	l, err := c.Find(ctx, a)
	if err != nil {
		return err
	}
	op := guard.Operation(c.Once)
	if !c.Yes {
		question := fmt.Sprintf("Permit the program of session %s to %s once?", l.ID, text.Printable(c.Once))
		if err := a.Confirm(question); err != nil {
			return err
		}
	}
	id, err := a.Manager.AllowOnce(ctx, string(l.Origin), l.ID.String(), op)
	if err != nil {
		return err
	}
	if l.Kernel == kernel.Active {
		a.Warn("the kernel layer keeps the repository read-only for this session regardless; " +
			"superqode run --enforce off disables it")
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", id, "operation", op)
	}
	return a.Line("%s\t%s", id, op)
}
