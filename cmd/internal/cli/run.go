package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/session"
)

// runCmd is the main job.
type runCmd struct {
	openFlags
	setupFlags
	execFlags
	agentsFlags
	programFlags
	Cmd []string `arg:"" optional:"" passthrough:"partial" name:"cmd" placeholder:"CMD" help:"The program and its arguments, after --."`
}

// Help tells what happens to the exit code.
func (*runCmd) Help() string {
	return "The exit code is the program's own. 124: time-out. 125: superqode itself failed. 126, 127: the program could not be executed, was not found. 6: the program succeeded and a check afterwards did not."
}

// Run opens a session, runs the program and prints what came of it.
func (c *runCmd) Run(ctx context.Context, a *app) error {
	cfg, err := a.configurationFor(ctx, c.DryRun)
	if err != nil {
		return err
	}
	team, err := c.team(cfg)
	if err != nil {
		return err
	}
	exec, err := c.execFlags.options(a, nil)
	if err != nil {
		return err
	}
	if len(team) > 0 {
		c.Agent = nil
	} else {
		in, err := c.set(ctx, a, &exec, c.Cmd)
		if err != nil {
			return err
		}
		defer in.Close()
	}
	a.warnUnused(cfg)
	open, err := c.openFlags.options(a, cfg)
	if err != nil {
		return err
	}
	if open.KernelOptions, err = c.kernelFlags.options(a, cfg); err != nil {
		return err
	}
	if open.Defaults, err = c.execFlags.defaults(a, cfg); err != nil {
		return err
	}
	if c.DryRun {
		open.Setup = c.setupFlags.given(a, cfg)
		return a.dryRun(ctx, open, exec, cfg)
	}
	if open.Setup, err = c.setupFlags.options(ctx, a, cfg); err != nil {
		return err
	}
	if len(team) > 0 {
		if c.Agents != "" { // commands of the configuration
			if err := a.ensureTrust(ctx, cfg); err != nil {
				return err
			}
		}
		return a.runAgents(ctx, open, exec, session.AgentsOptions{Agents: team, Parallel: c.MaxParallel, Shared: c.SharedSpace})
	}
	m, err := a.sessions()
	if err != nil {
		return err
	}
	res, err := m.Run(ctx, open, exec)
	if failed, ok := errors.AsType[*setup.Error](err); ok {
		a.tellOutput(failed.Step)
	}
	if res == nil {
		return err
	}
	err = errors.Join(err, a.stepSummary(ctx, c.Report, res.SessionID))
	if perr := a.printResult(res); perr != nil && err == nil {
		err = perr
	}
	return programError(res.ExitCode, err)
}

// runUsage is how a line of run looks.
const runUsage = "superqode run -- CMD [ARG…]"

// programArgs takes off the "--" that kong leaves before the program. usage is the
// hint for a line without one.
func programArgs(args []string, usage string) ([]string, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "" {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "no program to run"), "%s", usage)
	}
	return args, nil
}

// programError joins the program's exit code with what superqode could not do:
// a program that failed keeps its code, one that succeeded must not hide our
// failure.
func programError(code int, err error) error {
	switch {
	case err != nil && code != 0:
		return &failedProgram{statusError(code), err}
	case err != nil:
		return err
	case code != 0:
		return statusError(code)
	}
	return nil
}

// failedProgram is an error of ours beside a program's own failure: its sentence
// is printed and the program's code is kept.
type failedProgram struct {
	status statusError
	err    error
}

func (e *failedProgram) Error() string { return e.err.Error() }
func (e *failedProgram) Unwrap() error { return e.err }

// printResult prints a session's end: a document with --json, else a summary.
func (a *app) printResult(res *artifacts.Result) error {
	if a.flags.JSON {
		a.printed = true
		return a.printJSON(res)
	}
	if !a.flags.Quiet {
		a.summary(res)
	}
	return nil
}

// warnUnused says which configured keys have no effect yet.
func (a *app) warnUnused(cfg *config.Config) {
	var keys []string
	for _, v := range cfg.Unused() {
		keys = append(keys, v.Key+" ("+v.Origin.String()+")")
	}
	if len(keys) > 0 {
		a.warn("configured, but without effect in this version: " + strings.Join(keys, ", "))
	}
}
