package runcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trust"
)

// Trust lets an origin's committed commands run.
type Trust struct {
	List   bool `xor:"do" help:"List what is trusted."`
	Revoke bool `xor:"do" help:"Revoke the trust in this origin, or with --all in every origin."`
	Show   bool `xor:"do" help:"Print the commands that need trust, without changing anything."`
	All    bool `help:"With --list and --revoke: every origin."`
	Yes    bool `short:"y" help:"Do not ask for confirmation."`
}

// Run shows the commands and asks.
func (c *Trust) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	if c.All && !c.List && !c.Revoke {
		return superqode.Errorf(superqode.ErrUsage, "--all requires --list or --revoke")
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
		a.Note("nothing here requires trust")
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
			a.Note("already trusted")
		}
		return printTrust(a, t, open == nil)
	}
	if err := trust.OnlyOutside(m.Host, "let commands run"); err != nil {
		return err
	}
	// Who is not at a terminal has typed the command all the same: as with direnv
	// allow, that is the yes.
	if !c.Yes && !a.Flags.NoInput && term.IsTerminal(a.In) {
		if err := a.Confirm("Trust these commands until they change?"); err != nil {
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
		return a.PrintFields("trusted", trusted, "trust", t) // null where there is nothing to trust
	}
	if t == nil {
		return nil
	}
	word := "not trusted"
	if trusted {
		word = "trusted"
	}
	return a.Line("%s\t%s\t%s", word, t.Digest, text.QuotePath(string(t.Origin)))
}

// list prints what is trusted, of every origin.
func (c *Trust) list(a *app.App, m *life.Manager) error {
	list, err := trust.Trusted(m.Host)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("trusted", list)
	}
	return a.Table([]string{"TRUSTED", "DIGEST", "COMMANDS", "ORIGIN"}, app.Rows(list, func(t trust.Grant) []string {
		var lines []string
		for _, k := range t.Commands {
			lines = append(lines, k.Line)
		}
		return []string{
			t.At.Local().Format(time.DateTime), t.Digest.String()[:19], text.Printable(strings.Join(lines, "; ")),
			text.QuotePath(string(t.Origin)),
		}
	}))
}

func (c *Trust) revoke(ctx context.Context, a *app.App, m *life.Manager) error {
	dir := app.OriginDir(a.Flags.Repo)
	if c.All {
		dir = ""
	}
	gone, err := trust.Revoke(ctx, m.Host, dir)
	if err != nil {
		return err
	}
	if len(gone) == 0 && !c.All {
		err := superqode.Errorf(superqode.ErrNotFound, "%s has no trusted commands", dir)
		return superqode.WithHint(err, "superqode trust --list")
	}
	if a.Flags.JSON {
		return a.PrintFields("revoked", gone)
	}
	for _, t := range gone {
		err = errors.Join(err, a.Line("revoked\t%s\t%s", t.Digest, text.QuotePath(string(t.Origin))))
	}
	return err
}

// ensureTrust makes sure that the configuration's commands may run. A person at
// a terminal is asked; everybody else sees how to say yes.
func ensureTrust(ctx context.Context, a *app.App, cfg *config.Config) error {
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	dir := app.OriginDir(a.Flags.Repo)
	t, err := trust.Untrusted(ctx, m.Host, dir, cfg)
	if err != nil || t == nil {
		return err
	}
	hint := "superqode -C " + text.Quote(dir)
	if a.Flags.Config != "" {
		hint += " --config " + text.Quote(a.Flags.Config)
	}
	hint += " trust"
	if a.Flags.NoInput || !term.IsTerminal(a.In) || trust.OnlyOutside(m.Host, "let commands run") != nil {
		first := t.Commands[0]
		file := strings.TrimRight(strings.TrimRight(first.From, "0123456789"), ":")
		err := superqode.Errorf(superqode.ErrDenied, "%s wants to run commands that nobody has trusted yet (%s: %s)",
			text.Printable(file), first.Key, text.Printable(first.Line))
		return superqode.WithHint(err, "%s", hint)
	}
	showTrust(a, t)
	if err := a.Confirm("Trust these commands, now and until they change?"); err != nil {
		return superqode.WithHint(err, "%s", hint)
	}
	return trust.Approve(ctx, m.Host, t)
}

// showTrust prints what a person is asked about.
func showTrust(a *app.App, t *trust.Grant) {
	fmt.Fprintf(a.Err, "%s wants to run, in its sessions:\n", text.QuotePath(string(t.Origin)))
	for _, c := range t.Commands {
		fmt.Fprintf(a.Err, "  %s  %s\n      (%s)\n",
			text.Printable(c.Key), text.Printable(c.Line), text.Printable(c.From))
	}
	if len(t.Writes) > 0 {
		fmt.Fprintf(a.Err, "after writing these files: %s\n", text.Printable(strings.Join(t.Writes, ", ")))
	}
	if len(t.Files) > 0 {
		files := text.Printable(strings.Join(t.Files, ", "))
		fmt.Fprintf(a.Err, "with the current contents of these files: %s\n", files)
	}
	fmt.Fprintf(a.Err, "%s\n", t.Digest)
}
