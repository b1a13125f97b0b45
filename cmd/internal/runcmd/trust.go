package runcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trust"
	"github.com/seed-2d964004/superqode/session"
)

// Trust lets an origin's committed commands run.
type Trust struct {
	List   bool `xor:"do" help:"List what is trusted."`
	Revoke bool `xor:"do" help:"Revoke the trust in this origin, or with --all in every origin."`
	Show   bool `xor:"do" help:"Print the commands that need trust, without changing anything."`
	All    bool `help:"With --list and --revoke: every origin."`
	Yes    bool `short:"y" help:"Do not ask for confirmation."`
}

type trustJSON struct {
	SchemaVersion int          `json:"schema_version"`
	Trusted       bool         `json:"trusted"`
	Trust         *trust.Grant `json:"trust"` // null where there is nothing to trust
}

type trustListJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Trusted       []trust.Grant `json:"trusted"`
}

// Run shows the commands and asks.
func (c *Trust) Run(ctx context.Context, a *app.App, m *session.Manager) error {
	if c.All && !c.List && !c.Revoke {
		return superqode.Errorf(superqode.ErrUsage, "--all needs --list or --revoke")
	}
	switch {
	case c.List:
		return c.list(a, m)
	case c.Revoke:
		return c.revoke(ctx, a, m)
	}
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return err
	}
	t, err := trust.Needed(ctx, m.Host, app.OriginDir(a.Flags.Repo), cfg)
	if err != nil {
		return err
	}
	if t == nil {
		a.Note("nothing here needs trust")
		return printTrust(a, nil, false)
	}
	open, err := trust.Untrusted(ctx, m.Host, app.OriginDir(a.Flags.Repo), cfg)
	if err != nil {
		return err
	}
	if !a.Flags.Quiet || !c.Yes {
		showTrust(a, t)
	}
	if c.Show || open == nil {
		if open == nil {
			a.Note("trusted already")
		}
		return printTrust(a, t, open == nil)
	}
	if err := trust.OnlyOutside(m.Host, "let commands run"); err != nil {
		return err
	}
	// Who is not at a terminal has typed the command all the same: as with direnv
	// allow, that is the yes.
	if !c.Yes && !a.Flags.NoInput && term.IsTerminal(a.In) {
		if err := a.Confirm("Let these commands run, until they change?"); err != nil {
			return err
		}
	}
	if err := trust.Approve(ctx, m.Host, t); err != nil {
		return err
	}
	return printTrust(a, t, true)
}

func printTrust(a *app.App, t *trust.Grant, trusted bool) error {
	if a.Flags.JSON {
		return a.PrintJSON(trustJSON{1, trusted, t})
	}
	if t == nil {
		return nil
	}
	word := "not trusted"
	if trusted {
		word = "trusted"
	}
	_, err := fmt.Fprintf(a.Out, "%s\t%s\t%s\n", word, t.Digest, text.QuotePath(string(t.Origin)))
	return err
}

// list prints what is trusted, of every origin.
func (c *Trust) list(a *app.App, m *session.Manager) error {
	list, err := trust.Trusted(m.Host)
	if err != nil {
		return err
	}
	if list == nil {
		list = []trust.Grant{}
	}
	if a.Flags.JSON {
		return a.PrintJSON(trustListJSON{1, list})
	}
	rows := make([][]string, 0, len(list))
	for _, t := range list {
		var lines []string
		for _, k := range t.Commands {
			lines = append(lines, k.Line)
		}
		rows = append(rows, []string{t.At.Local().Format(time.DateTime), t.Digest.String()[:19], text.Printable(strings.Join(lines, "; ")), text.QuotePath(string(t.Origin))})
	}
	return a.Table([]string{"TRUSTED", "DIGEST", "COMMANDS", "ORIGIN"}, rows)
}

func (c *Trust) revoke(ctx context.Context, a *app.App, m *session.Manager) error {
	dir := app.OriginDir(a.Flags.Repo)
	if c.All {
		dir = ""
	}
	gone, err := trust.Revoke(ctx, m.Host, dir)
	if err != nil {
		return err
	}
	if len(gone) == 0 && !c.All {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "nothing of %s is trusted", dir), "superqode trust --list")
	}
	if a.Flags.JSON {
		if gone == nil {
			gone = []trust.Grant{}
		}
		return a.PrintJSON(struct {
			SchemaVersion int           `json:"schema_version"`
			Revoked       []trust.Grant `json:"revoked"`
		}{1, gone})
	}
	for _, t := range gone {
		if _, err := fmt.Fprintf(a.Out, "revoked\t%s\t%s\n", t.Digest, text.QuotePath(string(t.Origin))); err != nil {
			return err
		}
	}
	return nil
}
