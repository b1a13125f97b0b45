// Package runcmd has the commands that open a session, run programs in it and end it, and the trust
// that a configuration's commands need.
package runcmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Run is the main job.
type Run struct {
	newSession
	agentsFlags
	programFlags
	Cmd []string `arg:"" optional:"" passthrough:"partial" name:"cmd" placeholder:"CMD" help:"The program and its arguments, after --."`
}

// Run opens a session, runs the program and prints what came of it.
func (c *Run) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	cfg, err := a.ConfigurationFor(ctx, c.DryRun)
	if err != nil {
		return err
	}
	agents, err := c.team(cfg)
	if err != nil {
		return err
	}
	exec, err := c.execFlags.options(a, nil)
	if err != nil {
		return err
	}
	if len(agents) > 0 {
		c.Agent = nil
	} else {
		in, err := c.set(ctx, a, &exec, c.Cmd)
		if err != nil {
			return err
		}
		defer in.Close()
	}
	open, err := c.newSession.options(ctx, a, cfg, true)
	if err != nil {
		return err
	}
	several := team.AgentsOptions{Agents: agents, Parallel: c.MaxParallel, Shared: c.SharedSpace}
	if len(agents) > 0 {
		if err := several.Check(open.Mode, open.Claims); err != nil {
			return err
		}
	}
	if c.DryRun {
		return dryRun(ctx, a, open, exec, cfg)
	}
	if len(agents) > 0 {
		if c.Agents != "" { // commands of the configuration
			if err := ensureTrust(ctx, a, cfg); err != nil {
				return err
			}
		}
		return runAgents(ctx, a, open, exec, several)
	}
	res, err := m.Run(ctx, open, exec)
	if res == nil {
		return err
	}
	err = errors.Join(err, a.StepSummary(ctx, c.Report, res.SessionID))
	return printRun(a, res, err)
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
	return args, forShell(args)
}

// shellWords are commands that only a shell has.
var shellWords = []string{"cd", "export", "source", "alias", "set", "ulimit", "eval", "."}

// forShell refuses what a shell would understand and no program is called like.
func forShell(args []string) error {
	name, value, assigns := strings.Cut(args[0], "=")
	words := strings.Fields(args[0])
	missing := func(name string) bool {
		_, err := exec.LookPath(name)
		return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) // of a name with a slash
	}
	err := superqode.Errorf(superqode.ErrUsage, "no program is called %s", text.Quote(args[0]))
	st, _ := os.Stat(args[0])
	switch {
	case st != nil && st.IsDir() && missing(args[0]) || args[0] == ".":
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a folder, not a program", text.Quote(args[0])), "%s", inFolder(args))
	case assigns && len(args) > 1 && name != "" && !strings.ContainsAny(name, "/ ") && missing(args[0]):
		return superqode.WithHint(err, "superqode run --env %s -- %s", text.QuotePOSIX(name+"="+value), text.QuoteLine(args[1:]...))
	case len(words) > 1 && len(args) == 1 && !missing(words[0]) && missing(args[0]),
		slices.Contains(shellWords, args[0]) && missing(args[0]):
		return superqode.WithHint(err, "superqode run -- sh -c %s", text.QuotePOSIX(strings.Join(args, " ")))
	}
	return nil
}

// inFolder is the line for a session on a folder that was given like a program: "run DIR [FLAGS] [-- CMD]".
func inFolder(args []string) string {
	line := []string{"superqode", "run"}
	if args[0] != "." {
		line = []string{"superqode", "-C", args[0], "run"}
	}
	flags, program := args[1:], []string{"CMD"}
	if i := slices.Index(flags, "--"); i >= 0 {
		flags, program = flags[:i], flags[i+1:]
	}
	return text.QuoteLine(slices.Concat(line, flags, []string{"--"}, program)...)
}

// printRun prints the end of a session whose program ran, and returns what the process
// exits with: the document's error and exit code are the same.
func printRun(a *app.App, res *artifacts.Result, err error) error {
	perr := printResult(a, res, app.ProgramError(res.ExitCode, err), "run")
	return app.ProgramError(res.ExitCode, errors.Join(err, perr))
}

// printResult prints a session's end: a document with --json, with the error that the
// command ends with, else a summary.
func printResult(a *app.App, res *artifacts.Result, failed error, command string) error {
	if a.Flags.JSON {
		return a.PrintJSON(app.WithError(*res, failed, command))
	}
	if !a.Flags.Quiet {
		var b strings.Builder
		opt := report.TerminalOptions{Self: a.Self(res.Origin), Dir: a.Dir, Paint: a.PaintErr}
		if err := report.Terminal(&b, res, opt); err != nil {
			return err
		}
		_, _ = io.WriteString(a.Err, b.String()) // nothing to be done when stderr is gone
	}
	return nil
}
