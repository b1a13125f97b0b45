package runcmd

import (
	"context"
	"errors"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
)

// Create opens a session and leaves it.
type Create struct{ newSession }

// Run prints the session's id and its workspace.
func (c *Create) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	cfg, err := a.ConfigurationFor(ctx, c.DryRun)
	if err != nil {
		return err
	}
	opt, err := c.options(ctx, a, cfg)
	if err != nil {
		return err
	}
	if c.DryRun {
		return dryRun(ctx, a, opt, program.ExecOptions{}, cfg)
	}
	s, err := m.Create(ctx, opt)
	if err != nil {
		return err
	}
	rec := s.Record()
	if err := s.Close(); err != nil {
		return err
	}
	if a.Flags.JSON {
		steps, err := program.SetupSteps(s.Dir())
		if err != nil {
			return err
		}
		return a.PrintFields("session_id", rec.ID, "mode", rec.Mode, "origin", rec.Origin,
			"workspace", app.WorkspaceJSON{Path: rec.Workspace}, "setup", app.SetupJSON(steps), "warnings", rec.Warnings)
	}
	return a.Line("%s\t%s", rec.ID, rec.Workspace)
}

// endGrace lies between TERM and KILL for what --force ends.
const endGrace = 2 * time.Second

// End takes a session the whole way down.
type End struct {
	app.SessionFlag
	Keep  bool `help:"Keep the workspace."`
	Force bool `help:"End the session's running programs first."`
	Apply bool `help:"Apply the session's changes to the origin, all or none. A conflict preserves the session."`

	CollectTimeout time.Duration `placeholder:"DUR" help:"Stop collecting what the session left after DUR; what is not collected is kept."`
}

// Run prints the summary. Who ends a session wants it gone: a program that
// failed in it keeps nothing, only --keep and a session opened to be kept do.
func (c *End) Run(ctx context.Context, a *app.App, s *life.Session) error {
	if c.Force {
		if err := s.Release(ctx, endGrace); err != nil {
			return err
		}
	}
	rec := s.Record()
	keep := superqode.KeepNever
	if c.Keep || rec.Keep == superqode.KeepAlways && rec.State != superqode.StatePreserved {
		keep = superqode.KeepAlways
	}
	// once begun, the way down is not left half-way
	res, err := s.End(context.WithoutCancel(ctx), life.EndOptions{Keep: keep, EndApply: c.apply(rec), CollectTimeout: c.CollectTimeout, Signals: a.Signals})
	if res != nil {
		err = errors.Join(err, a.StepSummary(ctx, rec.Reports, res.SessionID))
		err = errors.Join(err, printResult(a, res, err, "workspace end"))
	}
	return err
}

// apply is what the flag asks for, or what the session was created with: then
// only if its last program succeeded, and once: a session that was preserved
// can be ended.
func (c *End) apply(rec state.Record) life.EndApply {
	if c.Apply {
		return life.EndApply{Apply: true}
	}
	once := rec.NoRevert && rec.State != superqode.StatePreserved
	return life.EndApply{Apply: once, NotApplied: team.NotAppliedOf(&rec)}
}
