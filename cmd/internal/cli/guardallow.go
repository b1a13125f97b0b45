package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/text"
)

// guardAllowCmd lets one operation through.
type guardAllowCmd struct {
	sessionFlag
	Once string `required:"" placeholder:"OPERATION" help:"The operation to let through once: commit, reset.hard, … (see guard status --operations)."`
	Yes  bool   `short:"y" help:"Do not ask; for a person's own script, outside of the session."`
}

type guardAllowJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Operation     guard.Operation     `json:"operation"`
}

// Run asks the person and tells the session's supervisor.
func (c *guardAllowCmd) Run(ctx context.Context, a *app) error {
	if c.Session == "" && a.guardsRepository(ctx) {
		return a.allowInRepository(ctx, guard.Operation(c.Once))
	}
	l, err := c.find(ctx, a)
	if err != nil {
		return err
	}
	op := guard.Operation(c.Once)
	if !c.Yes {
		if err := a.confirm(fmt.Sprintf("Let the program of session %s do %s once?", l.ID, text.Printable(c.Once))); err != nil {
			return err
		}
	}
	id, err := a.manager.AllowOnce(ctx, string(l.Origin), l.ID.String(), op)
	if err != nil {
		return err
	}
	if l.Kernel == kernel.Active {
		a.warn("the kernel layer of this session keeps the repository read-only whatever is let through; superqode run --enforce off runs without it")
	}
	if a.flags.JSON {
		return a.printJSON(guardAllowJSON{1, id, op})
	}
	_, err = fmt.Fprintf(a.Out, "%s\t%s\n", id, op)
	return err
}

// confirm asks a person at the terminal. Who is no person at a terminal is
// refused.
func (a *app) confirm(question string) error {
	if a.flags.NoInput || !isTerminal(a.In) {
		return superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "only a person at a terminal can say yes to this"), "run it in a terminal, or add --yes")
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err == nil && (word == "y" || word == "yes") {
		return nil
	}
	return superqode.Errorf(superqode.ErrDenied, "not allowed")
}
