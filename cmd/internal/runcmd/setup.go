package runcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trust"
	"github.com/seed-2d964004/superqode/session"
)

// setupFlags say what must be there before the program runs; run and workspace
// create share them.
type setupFlags struct {
	Bootstrap []string `placeholder:"CMD" sep:"none" help:"Run this shell command in the workspace after the configured setup and before the program (repeatable)."`
	Input     []string `placeholder:"FROM[:TO[:ro,link,optional]]" sep:"none" help:"Copy a file, a folder or artifact://NAME[@VERSION] into the workspace (repeatable)."`
	NoSetup   bool     `help:"Skip the configured inputs and setup."`
}

// options turns the flags and the configuration into a setup. Commands that need
// trust and have none are asked for, or refused.
func (f *setupFlags) options(ctx context.Context, a *app.App, cfg *config.Config) (session.SetupOptions, error) {
	opt := f.given(a, cfg)
	if f.NoSetup || len(cfg.SetupCommands()) == 0 {
		return opt, nil
	}
	return opt, ensureTrust(ctx, a, cfg)
}

// given is options without asking for trust.
func (f *setupFlags) given(a *app.App, cfg *config.Config) session.SetupOptions {
	opt := session.SetupOptions{
		Given:    state.GivenSetup{Bootstrap: append([]string{}, f.Bootstrap...), Inputs: append([]string{}, f.Input...), Dir: state.HostPath(a.Dir)},
		Starting: func(s setup.Step) { tellSetup(a, s) },
	}
	if !f.NoSetup {
		opt.Spec = setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}
	}
	return opt
}

// tellSetup shows which command the setup runs: some take minutes.
func tellSetup(a *app.App, s setup.Step) {
	if s.Kind == setup.KindRun {
		a.Note("%s %s", a.PaintErr("setup:", term.Cyan), text.Printable(s.Name))
	}
}

// Setup reconciles a session's workspace with the configuration.
type Setup struct {
	app.SessionFlag
	Force  bool `help:"Apply every entry again."`
	DryRun bool `help:"Print what would be applied and why, without doing it."`
}

// Run prints one row for each entry.
func (c *Setup) Run(ctx context.Context, a *app.App) error {
	l, err := c.Find(ctx, a)
	if err != nil {
		return err
	}
	if l.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", l.ID)
	}
	a.Flags.Repo = string(l.Origin) // wherever this was called, also in another origin
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return err
	}
	if !c.DryRun && len(cfg.SetupCommands()) > 0 {
		if err := ensureTrust(ctx, a, cfg); err != nil {
			return err
		}
	}
	s, err := a.Manager.Attach(ctx, string(l.Origin), l.ID.String())
	if err != nil {
		return err
	}
	defer s.Close()
	opt := session.SetupOptions{Spec: setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}, Force: c.Force, DryRun: c.DryRun, Starting: func(s setup.Step) { tellSetup(a, s) }}
	steps, err := s.Setup(ctx, opt)
	err = errors.Join(err, printSetup(a, l.ID, steps, err))
	if failed, ok := errors.AsType[*setup.Error](err); ok {
		tellOutput(a, failed.Step)
	}
	return err
}

func printSetup(a *app.App, id superqode.SessionID, steps []setup.Step, failed error) error {
	if a.Flags.JSON {
		if steps == nil && failed != nil {
			return nil // the error is the document
		}
		return a.PrintJSON(struct {
			SchemaVersion int                 `json:"schema_version"`
			SessionID     superqode.SessionID `json:"session_id"`
			Setup         []app.SetupStepJSON `json:"setup"`
		}{1, id, app.SetupJSON(steps)})
	}
	if len(steps) == 0 {
		if failed == nil {
			a.Note("nothing to set up")
		}
		return nil
	}
	rows := make([][]string, 0, len(steps))
	for _, s := range steps {
		rows = append(rows, []string{app.ActionWord(s.State), s.Kind, text.Printable(s.Name), text.Printable(s.Reason)})
	}
	return a.Table([]string{"ACTION", "KIND", "NAME", "WHY"}, rows)
}

// tellOutput shows the last lines of a command that failed.
func tellOutput(a *app.App, s setup.Step) {
	if s.Output == "" {
		return
	}
	for line := range strings.SplitSeq(s.Output, "\n") {
		a.Note("  %s", text.Printable(line))
	}
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
	hint := "superqode -C " + text.Quote(dir) + " trust"
	if a.Flags.Config != "" {
		hint = "superqode -C " + text.Quote(dir) + " --config " + text.Quote(a.Flags.Config) + " trust"
	}
	if a.Flags.NoInput || !term.IsTerminal(a.In) || trust.OnlyOutside(m.Host, "let commands run") != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "%s says to run commands that nobody has trusted yet (%s: %s)",
			text.Printable(strings.TrimRight(strings.TrimRight(t.Commands[0].From, "0123456789"), ":")), t.Commands[0].Key, text.Printable(t.Commands[0].Line)), "%s", hint)
	}
	showTrust(a, t)
	if err := a.Confirm("Let these commands run, now and until they change?"); err != nil {
		return superqode.WithHint(err, "%s", hint)
	}
	return trust.Approve(ctx, m.Host, t)
}

// showTrust prints what a person is asked about.
func showTrust(a *app.App, t *trust.Grant) {
	fmt.Fprintf(a.Err, "%s says to run, in its sessions:\n", text.QuotePath(string(t.Origin)))
	for _, c := range t.Commands {
		fmt.Fprintf(a.Err, "  %s  %s\n      (%s)\n", text.Printable(c.Key), text.Printable(c.Line), text.Printable(c.From))
	}
	if len(t.Writes) > 0 {
		fmt.Fprintf(a.Err, "after these files were written: %s\n", text.Printable(strings.Join(t.Writes, ", ")))
	}
	if len(t.Files) > 0 {
		fmt.Fprintf(a.Err, "with the contents that these files have now: %s\n", text.Printable(strings.Join(t.Files, ", ")))
	}
	fmt.Fprintf(a.Err, "%s\n", t.Digest)
}
