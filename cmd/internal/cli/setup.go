package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// setupFlags say what must be there before the program runs; run and workspace
// create share them.
type setupFlags struct {
	Bootstrap []string `placeholder:"CMD" sep:"none" help:"Run this line with sh in the workspace first, after the configured setup (repeatable)."`
	Input     []string `placeholder:"FROM[:TO[:ro,link,optional]]" sep:"none" help:"Put a file or folder, or artifact://NAME[@VERSION], into the workspace (repeatable)."`
	NoSetup   bool     `help:"Leave out the configured inputs and setup."`
}

// options turns the flags and the configuration into a setup. Commands that need
// trust and have none are asked for, or refused.
func (f *setupFlags) options(ctx context.Context, a *app, cfg *config.Config) (session.SetupOptions, error) {
	opt := f.given(a, cfg)
	if f.NoSetup || len(cfg.SetupCommands()) == 0 {
		return opt, nil
	}
	return opt, a.ensureTrust(ctx, cfg)
}

// given is options without asking for trust.
func (f *setupFlags) given(a *app, cfg *config.Config) session.SetupOptions {
	opt := session.SetupOptions{
		Given:    state.GivenSetup{Bootstrap: append([]string{}, f.Bootstrap...), Inputs: append([]string{}, f.Input...), Dir: state.HostPath(a.Dir)},
		Starting: func(s setup.Step) { a.tellSetup(s) },
	}
	if !f.NoSetup {
		opt.Spec = setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}
	}
	return opt
}

// tellSetup shows which command the setup runs: some take minutes.
func (a *app) tellSetup(s setup.Step) {
	if s.Kind == setup.KindRun {
		a.note("%s %s", a.paintErr("setup:", cyan), text.Printable(s.Name))
	}
}

// workspaceSetupCmd reconciles a session's workspace with the configuration.
type workspaceSetupCmd struct {
	sessionFlag
	Force  bool `help:"Apply everything again."`
	DryRun bool `help:"Only say what would be applied, and why."`
}

// Help tells what counts.
func (*workspaceSetupCmd) Help() string {
	return "Inputs, files and commands of superqode.yaml, and what was given on the command line when the session was opened. What holds already is skipped. Exit code 125: a required entry failed."
}

type setupStepJSON struct {
	Key             string  `json:"key"`
	Kind            string  `json:"kind"`
	Name            string  `json:"name"`
	State           string  `json:"state"`
	Reason          string  `json:"reason"`
	DurationSeconds float64 `json:"duration_seconds"`
	ExitCode        int     `json:"exit_code"`
	Output          string  `json:"output"`
}

func setupJSON(steps []setup.Step) []setupStepJSON {
	list := make([]setupStepJSON, 0, len(steps))
	for _, s := range steps {
		list = append(list, setupStepJSON{s.Key, s.Kind, s.Name, s.State, s.Reason, s.Report().DurationSeconds, s.ExitCode, s.Output})
	}
	return list
}

// Run prints one row for each entry.
func (c *workspaceSetupCmd) Run(ctx context.Context, a *app) error {
	l, err := c.find(ctx, a)
	if err != nil {
		return err
	}
	if l.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", l.ID)
	}
	a.flags.Repo = string(l.Origin) // wherever this was called, also in another origin
	cfg, err := a.configuration(ctx)
	if err != nil {
		return err
	}
	if !c.DryRun && len(cfg.SetupCommands()) > 0 {
		if err := a.ensureTrust(ctx, cfg); err != nil {
			return err
		}
	}
	s, err := a.manager.Attach(ctx, string(l.Origin), l.ID.String())
	if err != nil {
		return err
	}
	defer s.Close()
	opt := session.SetupOptions{Spec: setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}, Force: c.Force, DryRun: c.DryRun, Starting: func(s setup.Step) { a.tellSetup(s) }}
	steps, err := s.Setup(ctx, opt)
	if perr := a.printSetup(l.ID, steps, err); perr != nil && err == nil {
		err = perr
	}
	if failed, ok := errors.AsType[*setup.Error](err); ok {
		a.tellOutput(failed.Step)
	}
	return err
}

func (a *app) printSetup(id superqode.SessionID, steps []setup.Step, failed error) error {
	if a.flags.JSON {
		if steps == nil && failed != nil {
			return nil // the error is the document
		}
		a.printed = true
		return a.printJSON(struct {
			SchemaVersion int                 `json:"schema_version"`
			SessionID     superqode.SessionID `json:"session_id"`
			Setup         []setupStepJSON     `json:"setup"`
		}{1, id, setupJSON(steps)})
	}
	if len(steps) == 0 {
		if failed == nil {
			a.note("nothing to set up")
		}
		return nil
	}
	rows := make([][]string, 0, len(steps))
	for _, s := range steps {
		rows = append(rows, []string{actionWord(s.State), s.Kind, text.Printable(s.Name), text.Printable(s.Reason)})
	}
	return a.table([]string{"ACTION", "KIND", "NAME", "WHY"}, rows)
}

// actionWord says apply or skip, or what became of it.
func actionWord(state string) string {
	switch state {
	case setup.Applied:
		return "applied"
	case setup.WouldApply:
		return "apply"
	case setup.Skipped:
		return "skip"
	}
	return "failed"
}

// tellOutput shows the last lines of a command that failed.
func (a *app) tellOutput(s setup.Step) {
	if s.Output == "" {
		return
	}
	for line := range strings.SplitSeq(s.Output, "\n") {
		a.note("  %s", text.Printable(line))
	}
}

// ensureTrust makes sure that the configuration's commands may run. A person at
// a terminal is asked; everybody else is told how to say yes.
func (a *app) ensureTrust(ctx context.Context, cfg *config.Config) error {
	m, err := a.sessions()
	if err != nil {
		return err
	}
	dir := originDir(a.flags.Repo)
	t, err := m.Untrusted(ctx, dir, cfg)
	if err != nil || t == nil {
		return err
	}
	hint := "superqode -C " + text.Quote(dir) + " trust"
	if a.flags.Config != "" {
		hint = "superqode -C " + text.Quote(dir) + " --config " + text.Quote(a.flags.Config) + " trust"
	}
	if a.flags.NoInput || !isTerminal(a.In) || m.OnlyOutside("let commands run") != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "%s says to run commands that nobody has trusted yet (%s: %s)",
			text.Printable(strings.TrimRight(strings.TrimRight(t.Commands[0].From, "0123456789"), ":")), t.Commands[0].Key, text.Printable(t.Commands[0].Line)), "%s", hint)
	}
	a.showTrust(t)
	if err := a.confirm("Let these commands run, now and until they change?"); err != nil {
		return superqode.WithHint(err, "%s", hint)
	}
	return m.Approve(ctx, t)
}

// showTrust prints what a person is asked about.
func (a *app) showTrust(t *session.Trust) {
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
