package runcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// runFlag names a run of a session.
type runFlag struct {
	Number int `type:"run" name:"run" placeholder:"N" help:"The run's number, as workspace ps prints it (default: the last run)."`
}

// printRuns prints the record of a run that ended, or of the blocks that ran, with the
// error that the command ends with.
func printRuns(a *app.App, s *life.Session, number int, code *programFlags, failed error) error {
	l := state.Listed{Record: s.Record(), Dir: s.Dir()}
	run, err := program.FindRun(&l, number)
	if err != nil {
		return err
	}
	exit, kind := app.Classify(failed, "workspace exec")
	if kind != "" && kind != "status" {
		run.ExitCode, run.Error = &exit, failed.Error()
	}
	if len(code.blocks) == 0 {
		return a.PrintJSON(run)
	}
	notRun := append([]program.Block{}, code.notRun...)
	return a.PrintFields("session_id", l.ID, "exit_code", exit, "blocks", code.blocks, "not_run", notRun, "error", run.Error)
}

// Ps lists runs.
type Ps struct{ app.SessionFlag }

// Run prints a table, or one document.
func (c *Ps) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	sessions, err := c.sessions(ctx, a, m)
	if err != nil {
		return err
	}
	var all []program.RunRecord
	for _, l := range sessions {
		runs, err := program.Runs(&l)
		if err != nil {
			return fmt.Errorf("session %s: %w", l.ID, err)
		}
		all = append(all, runs...)
	}
	if a.Flags.JSON {
		return a.PrintFields("runs", all)
	}
	rows := app.Rows(all, func(r program.RunRecord) []string {
		pid, exit := "-", "-"
		if r.State == program.RunRunning {
			pid = strconv.Itoa(r.PID)
		}
		if r.ExitCode != nil {
			exit = strconv.Itoa(*r.ExitCode)
			if r.Limit != "" {
				exit += " (" + r.Limit + ")"
			} else if r.TimedOut {
				exit += " (timed out)"
			}
		}
		return []string{
			a.SessionName(r.SessionID, ""), strconv.Itoa(r.Run), string(r.State), pid, exit, text.Age(time.Since(r.StartedAt)),
			text.Took(r.DurationSeconds), text.Printable(text.QuoteLine(r.Command...)),
		}
	})
	return a.Table([]string{"SESSION", "RUN", "STATE", "PID", "EXIT", "AGE", "TOOK", "COMMAND"}, rows)
}

// sessions are the one that was named or, of those here, all that have not ended.
func (c *Ps) sessions(ctx context.Context, a *app.App, m *life.Manager) ([]state.Listed, error) {
	if c.Ref(a) != "" {
		l, err := m.Find(ctx, a.Flags.Repo, c.Ref(a))
		if err != nil {
			return nil, err
		}
		return []state.Listed{*l}, nil
	}
	list, _, err := registry.List(ctx, m.Host, a.Flags.Repo, false)
	return slices.DeleteFunc(list, func(l state.Listed) bool { return l.State == superqode.StateDone }), err
}

// Logs prints a run's output.
type Logs struct {
	app.SessionFlag
	runFlag
	Offset int64         `placeholder:"N" xor:"from" help:"Skip the first N bytes."`
	Line   int           `placeholder:"N" xor:"from" help:"Skip the first N lines."`
	Limit  int           `type:"count" placeholder:"N" help:"Print at most N lines."`
	Follow bool          `short:"f" xor:"until" help:"Follow the output until the run ends."`
	Wait   time.Duration `placeholder:"DUR" xor:"until" help:"Wait for output up to DUR, or until the run ends."`
	Stdout bool          `xor:"stream" help:"Print stdout only."`
	Stderr bool          `xor:"stream" help:"Print stderr only."`
}

// Run prints the output as it was, both streams in the order in which they came.
func (c *Logs) Run(ctx context.Context, a *app.App) error {
	if c.Offset < 0 {
		return superqode.Errorf(superqode.ErrUsage, "--offset %d: must not be less than zero", c.Offset)
	}
	if c.Line < 0 {
		return superqode.Errorf(superqode.ErrUsage, "--line %d: must not be less than zero", c.Line)
	}
	l, err := c.Find(ctx, a)
	if err != nil {
		return err
	}
	opt := program.LogOptions{Run: c.Number, Offset: c.Offset, Line: c.Line, Limit: c.Limit, Follow: c.Follow, Wait: c.Wait}
	switch {
	case c.Stdout:
		opt.Stream = "stdout"
	case c.Stderr:
		opt.Stream = "stderr"
	}
	var held strings.Builder
	var out io.Writer = a.Out
	if a.Flags.JSON {
		out = &held
	}
	run, next, err := program.CopyLog(ctx, l, out, opt)
	if err != nil {
		return err
	}
	if run.State == program.RunDead {
		a.Note("run %[1]d is dead: its supervisor was killed; "+
			"superqode workspace kill --session %[2]s --run %[1]d ends what is left of it", run.Run, l.ID)
	}
	if a.Flags.JSON {
		fields := []any{"run", run, "offset", c.Offset, "next_offset", next.Offset,
			"data", []byte(held.String()), "text", strings.ToValidUTF8(held.String(), "\uFFFD")}
		if c.Offset == 0 { // or nobody knows the lines' numbers
			fields = append(fields, "line", c.Line, "next_line", next.Line)
		}
		return a.PrintFields(fields...)
	}
	return nil
}

// Kill ends a run.
type Kill struct {
	app.SessionFlag
	Number int           `type:"run" name:"run" placeholder:"N" help:"The run's number, as workspace ps prints it (default: the only active run)."`
	Grace  time.Duration `type:"grace" default:"2s" placeholder:"DUR" help:"Time between TERM and KILL (default 2s; 0 kills at once)."`
}

// onlyRun returns the number of the run that is under way.
func onlyRun(l *state.Listed) (int, error) {
	runs, err := program.Runs(l)
	if err != nil {
		return 0, err
	}
	var under []string
	last := 0
	for _, r := range runs {
		if r.State == program.RunRunning {
			under, last = append(under, strconv.Itoa(r.Run)), r.Run
		}
	}
	switch len(under) {
	case 0:
		err = superqode.Errorf(superqode.ErrNotFound, "session %s has no active run", l.ID)
	case 1:
		return last, nil
	default:
		err = superqode.Errorf(superqode.ErrUsage, "--run is required, since several runs are active: %s",
			strings.Join(under, ", "))
	}
	return 0, superqode.WithHint(err, "superqode workspace ps --session %s", l.ID)
}

// Run prints how the run ended.
func (c *Kill) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if c.Number == 0 {
		only, err := onlyRun(l)
		if err != nil {
			return err
		}
		c.Number = only
	}
	run, err := program.KillRun(ctx, l, c.Number, c.Grace)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(run)
	}
	how := "what was left of it was ended"
	if run.ExitCode != nil {
		how = fmt.Sprintf("exit code %d", *run.ExitCode)
	}
	return a.Line("run %d ended: %s", run.Run, how)
}

// Send writes to a run's stdin.
type Send struct {
	app.SessionFlag
	Number int      `type:"run" name:"run" placeholder:"N" help:"The run's number, as workspace ps prints it (default: the only active run)."`
	Close  bool     `aliases:"eof" help:"Close the program's stdin afterwards. A terminal is not read then."`
	Lines  []string `arg:"" optional:"" name:"line" sep:"none" help:"Send these lines instead of what comes on stdin."`
}

// Run sends until the input ends, or the program takes no more.
func (c *Send) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if c.Number == 0 {
		only, err := onlyRun(l)
		if err != nil {
			return err
		}
		c.Number = only
	}
	in := a.In
	switch {
	case len(c.Lines) > 0:
		in = strings.NewReader(strings.Join(c.Lines, "\n") + "\n")
	case c.Close && term.IsTerminal(a.In):
		in = strings.NewReader("")
	}
	sent, err := untilSignal(ctx, a, func() (int64, error) { return program.Send(ctx, l, c.Number, in, c.Close) })
	if err != nil || !a.Flags.JSON {
		return err
	}
	return a.PrintFields("session_id", l.ID, "run", c.Number, "sent", sent, "closed", c.Close)
}
