package runcmd

import (
	"context"
	"errors"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
)

// Create opens a session and leaves it.
type Create struct {
	newSession
	Reuse bool `help:"Take the open session of that --name, where there is one."`
}

// Run prints the session's id and its workspace.
func (c *Create) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	if there, err := c.reused(ctx, a, m); err != nil || there != nil {
		return errors.Join(err, c.print(a, there))
	}
	cfg, err := a.ConfigurationFor(ctx, c.DryRun)
	if err != nil {
		return err
	}
	opt, err := c.options(ctx, a, cfg, false)
	if err != nil {
		return err
	}
	if c.DryRun {
		return dryRun(ctx, a, opt, program.ExecOptions{}, cfg)
	}
	s, err := m.Create(ctx, opt)
	if err != nil {
		if there, rerr := c.reused(ctx, a, m); rerr == nil && there != nil { // somebody else made it meanwhile
			return c.print(a, there)
		}
		return err
	}
	rec := s.Record()
	return errors.Join(s.Close(), c.print(a, &state.Listed{Record: rec, Dir: s.Dir()}))
}

// reused is the open session that --reuse takes.
func (c *Create) reused(ctx context.Context, a *app.App, m *life.Manager) (*state.Listed, error) {
	if !c.Reuse {
		return nil, nil
	}
	if c.Name == "" {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--reuse needs a --name"), "superqode workspace create --reuse --name NAME")
	}
	p, err := registry.Locate(ctx, m.Host, a.Flags.Repo)
	if err != nil {
		return nil, err
	}
	return p.Named(c.Name)
}

func (c *Create) print(a *app.App, s *state.Listed) error {
	if s == nil {
		return nil
	}
	rec := &s.Record
	if a.Flags.JSON {
		steps, err := program.SetupSteps(s.Dir)
		if err != nil {
			return err
		}
		return a.PrintFields("session_id", rec.ID, "mode", rec.Mode, "origin", rec.Origin,
			"workspace", app.WorkspaceOf(rec), "setup", app.SetupJSON(steps), "warnings", rec.Warnings)
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
