package attach

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/mode"
	machine "github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/revert"
)

// Revert brings the session's workspace, in git_snapshot mode the origin, back to
// the base, proves it and leaves the session as it is otherwise. It needs the
// session for itself; the error wraps ErrLocked while a program runs in it,
// ErrNotFound when the session has ended, and ErrVerification when something is
// still not as it was.
func (s *Attached) Revert(ctx context.Context, opt mode.RevertOptions) (*mode.Reverted, error) {
	if err := s.revertable(); err != nil {
		return nil, err
	}
	if opt.How == "" {
		opt.How = machine.Stat
	}
	if !opt.DryRun {
		alone, err := s.Own()
		if err != nil {
			return nil, err
		}
		if err := s.revertable(); err != nil {
			return nil, err
		}
		if err := alone.EndAbandoned(); err != nil {
			return nil, err
		}
	}
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return nil, err
	}
	r := &mode.Reverted{}
	done := s.Begin("reverting", nil)
	opt.Forget = func(ctx context.Context) error { return gitdir.Forget(ctx, s.Site) }
	err = mode.For(s.Rec.Mode).Revert(ctx, s.Site, opt, r)
	done()
	r.Salvages = s.Salvages
	if err = errors.Join(err, unlock()); err != nil || opt.DryRun {
		return r, site.RoomHint(err, "superqode workspace revert --session "+s.Rec.ID.String())
	}
	if !r.Verified {
		return r, superqode.Errorf(superqode.ErrVerification, "%s not as it was: %s", mode.IsAre(len(r.Differences)), text.FirstOf(r.Differences))
	}
	return r, errors.Join(mode.Meanwhile(s.Site), s.Update(ctx, func(r *state.Record) { r.ChangeCount = -1 }))
}

// revertable refuses sessions that have no base to go back to.
func (s *Attached) revertable() error {
	if s.Rec.State == superqode.StateDone {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has ended, and there is nothing to go back to", s.Rec.ID), "superqode workspace restore --list")
	}
	return mode.Restorable(s.Site)
}

// Verify compares the workspace, in git_snapshot mode the origin with its
// repository, with the base and changes nothing.
func (s *Attached) Verify(ctx context.Context, how revert.Method, within []superqode.RelPath) (*revert.Verified, error) {
	v, err := s.verify(ctx, machine.Method(how), within)
	return (*revert.Verified)(v), err
}

func (s *Attached) verify(ctx context.Context, how machine.Method, within []superqode.RelPath) (*machine.Verified, error) {
	if err := s.revertable(); err != nil {
		return nil, err
	}
	if why, err := mode.WorkspaceGone(s.Site); err != nil || why != "" {
		if err == nil {
			err = superqode.Errorf(superqode.ErrVerification, "%s", why)
		}
		return &machine.Verified{Differences: []string{err.Error()}}, err
	}
	v, err := mode.For(s.Rec.Mode).Verify(ctx, s.Site, how, within)
	if err != nil {
		return nil, err
	}
	if len(v.Differences) > 0 {
		return v, superqode.Errorf(superqode.ErrVerification, "%s not as at the beginning of session %s", mode.IsAre(len(v.Differences)), s.Rec.ID)
	}
	return v, nil
}

// RevertAgent takes back what one agent changed in a workspace in which several
// work: those places, and those whole files, that are known to be its own. What
// it overwrites is salvaged, and what it did is proven. The error wraps
// ErrConflict if some could not be told apart: everything else was reverted.
func (s *Attached) RevertAgent(ctx context.Context, agent superqode.AgentID, opt mode.RevertOptions) (*attribution.AgentReverted, error) {
	if s.Rec.State == superqode.StateDone {
		return nil, s.revertable()
	}
	if len(s.Rec.Agents) > 0 && !s.Rec.Shared {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "the agents of session %s have workspaces of their own", s.Rec.ID), "superqode workspace apply --session %s --agent NAME, for the others", s.Rec.ID)
	}
	if !opt.DryRun {
		alone, err := s.Own()
		if err != nil {
			return nil, err
		}
		if err := alone.EndAbandoned(); err != nil {
			return nil, err
		}
	}
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return nil, err
	}
	r := &attribution.AgentReverted{}
	err = s.TakeBack(ctx, agent, opt, r)
	r.Salvages = s.Salvages
	if err = errors.Join(err, unlock()); err != nil || opt.DryRun {
		return r, err
	}
	if !r.Verified {
		return r, superqode.Errorf(superqode.ErrVerification, "%s not as it should be: %s", mode.IsAre(len(r.Differences)), text.FirstOf(r.Differences))
	}
	if len(r.Mixed) > 0 {
		err = superqode.Errorf(superqode.ErrConflict, "%s of agent %s could not be taken back", text.Plural(len(r.Mixed), "change"), agent)
	}
	return r, errors.Join(err, s.Update(ctx, func(r *state.Record) { r.ChangeCount = -1 }))
}
