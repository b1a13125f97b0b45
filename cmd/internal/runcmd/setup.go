package runcmd

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// setupFlags say what must be there before the program runs; run and workspace
// create share them.
type setupFlags struct {
	Bootstrap []string `placeholder:"CMD" sep:"none" help:"Run this shell command in the workspace after the configured setup and before the program (repeatable)."`
	Input     []string `placeholder:"FROM[:TO[:ro,link,optional]]" sep:"none" help:"Copy a file, a folder or artifact://NAME[@VERSION] into the workspace (repeatable)."`
	NoSetup   bool     `help:"Skip the configured inputs and setup."`
}

// options turns the flags and the configuration into a setup.
func (f *setupFlags) options(a *app.App, cfg *config.Config) prepare.Options {
	opt := prepare.Options{
		Given: state.GivenSetup{
			Bootstrap: app.NotNil(f.Bootstrap), Inputs: app.NotNil(f.Input), Dir: state.HostPath(a.Dir),
		},
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
func (c *Setup) Run(ctx context.Context, a *app.App, l *state.Listed) error {
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
	steps, err := s.Setup(ctx, prepare.Options{
		Spec: setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}, Force: c.Force, DryRun: c.DryRun,
		Starting: func(s setup.Step) { tellSetup(a, s) },
	})
	return errors.Join(err, printSetup(a, l.ID, steps, err))
}

func printSetup(a *app.App, id superqode.SessionID, steps []setup.Step, failed error) error {
	if a.Flags.JSON {
		if steps == nil && failed != nil {
			return nil // the error is the document
		}
		return a.PrintFields("session_id", id, "setup", app.SetupJSON(steps))
	}
	if len(steps) == 0 {
		if failed == nil {
			a.Note("nothing to set up")
		}
		return nil
	}
	return a.Table([]string{"ACTION", "KIND", "NAME", "WHY"}, app.Rows(steps, func(s setup.Step) []string {
		return []string{app.ActionWord(s.State), s.Kind, text.Printable(s.Name), text.Printable(s.Reason)}
	}))
}
