package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// sessionFlag names the session that a command is about. Without it that is the
// session in which the command runs, or the only one that is open here.
type sessionFlag struct {
	Session string `short:"s" placeholder:"ID" help:"The session: its id, or any unique beginning or end of it, or its name."`
}

// ref returns what to look the session up by.
func (f sessionFlag) ref(a *app) string {
	if f.Session == "" {
		return a.getenv("SUPERQODE_SESSION_ID")
	}
	return f.Session
}

// attach opens the session; close it.
func (f sessionFlag) attach(ctx context.Context, a *app) (*session.Session, error) {
	m, err := a.sessions()
	if err != nil {
		return nil, err
	}
	return m.Attach(ctx, a.flags.Repo, f.ref(a))
}

// find looks the session up without opening it.
func (f sessionFlag) find(ctx context.Context, a *app) (*state.Listed, error) {
	m, err := a.sessions()
	if err != nil {
		return nil, err
	}
	return m.Find(ctx, a.flags.Repo, f.ref(a))
}

// workspaceCreateCmd opens a session and leaves it.
type workspaceCreateCmd struct {
	openFlags
	setupFlags
	execFlags
}

type createdJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Mode          superqode.Mode      `json:"mode"`
	Origin        state.HostPath      `json:"origin"`
	Workspace     workspaceJSON       `json:"workspace"`
	Setup         []setupStepJSON     `json:"setup"`
	Warnings      []string            `json:"warnings"`
}

type workspaceJSON struct {
	Path state.HostPath `json:"path"`
}

// Run prints the session's id and its workspace.
func (c *workspaceCreateCmd) Run(ctx context.Context, a *app) error {
	cfg, err := a.configurationFor(ctx, c.DryRun)
	if err != nil {
		return err
	}
	a.warnUnused(cfg)
	opt, err := c.openFlags.options(a, cfg)
	if err != nil {
		return err
	}
	if opt.KernelOptions, err = c.kernelFlags.options(a, cfg); err != nil {
		return err
	}
	if opt.Defaults, err = c.execFlags.defaults(a, cfg); err != nil {
		return err
	}
	if c.DryRun {
		opt.Setup = c.setupFlags.given(a, cfg)
		return a.dryRun(ctx, opt, session.ExecOptions{}, cfg)
	}
	m, err := a.sessions()
	if err != nil {
		return err
	}
	if opt.Setup, err = c.setupFlags.options(ctx, a, cfg); err != nil {
		return err
	}
	s, err := m.Create(ctx, opt)
	if err != nil {
		if failed, ok := errors.AsType[*setup.Error](err); ok {
			a.tellOutput(failed.Step)
		}
		return err
	}
	rec := s.Record()
	if err := s.Close(); err != nil {
		return err
	}
	if a.flags.JSON {
		steps, err := session.SetupSteps(s.Dir())
		if err != nil {
			return err
		}
		return a.printJSON(createdJSON{1, rec.ID, rec.Mode, rec.Origin, workspaceJSON{rec.Workspace}, setupJSON(steps), rec.Warnings})
	}
	_, err = fmt.Fprintf(a.Out, "%s\t%s\n", rec.ID, rec.Workspace)
	return err
}

// endGrace lies between TERM and KILL for what --force ends.
const endGrace = 2 * time.Second

// workspaceEndCmd takes a session the whole way down.
type workspaceEndCmd struct {
	sessionFlag
	Keep  bool `help:"Keep the workspace."`
	Force bool `help:"End first what still runs in the session."`
	Apply bool `help:"Bring the session's changes into the origin, all or none; what conflicts preserves the session."`
}

// Run prints the summary. Who ends a session wants it gone: a program that
// failed in it keeps nothing, only --keep and a session opened to be kept do.
func (c *workspaceEndCmd) Run(ctx context.Context, a *app) error {
	s, err := c.attach(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if c.Force {
		if err := s.Release(ctx, endGrace); err != nil {
			return err
		}
	}
	rec := s.Record()
	keep := state.KeepNever
	if c.Keep || rec.Keep == state.KeepAlways && rec.State != superqode.StatePreserved {
		keep = state.KeepAlways
	}
	// once begun, the way down is not left half-way
	res, err := s.End(context.WithoutCancel(ctx), session.EndOptions{Keep: keep, EndApply: c.apply(rec)})
	if res != nil {
		err = errors.Join(err, a.stepSummary(ctx, rec.Reports, res.SessionID))
		if perr := a.printResult(res); perr != nil && err == nil {
			err = perr
		}
	}
	return err
}

// apply is what the flag asks for, or what the session was created with: then
// only if its last program succeeded, and once: a session that was preserved
// can be ended.
func (c *workspaceEndCmd) apply(rec state.Record) session.EndApply {
	if c.Apply {
		return session.EndApply{Apply: true}
	}
	return session.EndApply{Apply: rec.NoRevert && rec.State != superqode.StatePreserved, NotApplied: session.NotApplied(&rec)}
}

// workspacePathCmd prints where a session works.
type workspacePathCmd struct{ sessionFlag }

// Run prints one line.
func (c *workspacePathCmd) Run(ctx context.Context, a *app) error {
	l, err := c.find(ctx, a)
	if err != nil {
		return err
	}
	if l.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", l.ID)
	}
	if a.flags.JSON {
		return a.printJSON(struct {
			SchemaVersion int                 `json:"schema_version"`
			SessionID     superqode.SessionID `json:"session_id"`
			Workspace     workspaceJSON       `json:"workspace"`
		}{1, l.ID, workspaceJSON{l.Workspace}})
	}
	path := string(l.Workspace)
	if a.outTTY {
		path = text.QuotePath(path)
	}
	_, err = fmt.Fprintln(a.Out, path)
	return err
}

// workspaceRecoverCmd finishes what a crash left.
type workspaceRecoverCmd struct{ sessionFlag }

type recoveredJSON struct {
	SessionID superqode.SessionID `json:"session_id"`
	Action    string              `json:"action"`
	Error     string              `json:"error"`
}

// Run prints one line for each session that had died.
func (c *workspaceRecoverCmd) Run(ctx context.Context, a *app) error {
	m, err := a.sessions()
	if err != nil {
		return err
	}
	done, err := m.Recover(ctx, a.flags.Repo, c.Session)
	if err != nil {
		return err
	}
	rows, failed := []recoveredJSON{}, error(nil)
	for _, r := range done {
		row := recoveredJSON{r.ID, r.Action, ""}
		if r.Err != nil {
			row.Error = r.Err.Error()
			failed = errors.Join(failed, fmt.Errorf("recover session %s: %w", r.ID, r.Err))
		}
		rows = append(rows, row)
		if !a.flags.JSON {
			fmt.Fprintf(a.Out, "%s\t%s\n", r.ID, r.Action)
		}
	}
	if len(rows) == 0 {
		a.note("nothing to recover")
	}
	if a.flags.JSON {
		a.printed = true
		if err := a.printJSON(struct {
			SchemaVersion int             `json:"schema_version"`
			Recovered     []recoveredJSON `json:"recovered"`
		}{1, rows}); err != nil {
			return err
		}
	}
	return failed
}

// sweepCmd empties a project's trash; superqode starts itself with it.
type sweepCmd struct {
	Project string `arg:""`
}

// Run prints nothing: nobody looks.
func (c *sweepCmd) Run(ctx context.Context, a *app) error {
	m, err := a.sessions()
	if err != nil {
		return err
	}
	return m.SweepProject(ctx, c.Project)
}
