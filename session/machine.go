package session

import (
	"context"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/state"
)

// GuardLayers tells of the guard's layers as a session would have them here.
func (m *Manager) GuardLayers(ctx context.Context) (layers.Report, error) {
	g, err := m.CheckedGit(ctx)
	if err != nil {
		return layers.Report{}, err
	}
	return layers.MachineOf(m.Host).Report(ctx, g)
}

// Helper returns the small binary that stands in sessions as git and as git's
// hooks, or superqode itself where that is not installed.
func (m *Manager) Helper() (string, error) { return layers.MachineOf(m.Host).Helper() }

// CachePath returns the folder for what can be made again.
func (m *Manager) CachePath() string { return layers.MachineOf(m.Host).CachePath() }

// guard is the session's guard, as package layers makes it.
func (s *Session) guard() *layers.Guard { return layers.Of(s.Site) }

// fillGuarded makes the workspace and the guard at the same time; fill joins them
// before it records that the session is active.
func (s *Session) fillGuarded(ctx context.Context, pl plan) error {
	own := *s.Site // what it reads does not change; the record is filled in meanwhile
	done := make(chan error, 1)
	var found state.GuardRecord
	go func() {
		var err error
		found, err = layers.Of(&own).Open(ctx)
		done <- err
	}()
	s.joinGuard = sync.OnceValue(func() error {
		err := <-done
		s.Rec.Guard = found
		return err
	})
	if err := s.fill(ctx, pl); err != nil {
		_ = s.joinGuard() // the folder is about to be removed; the first error is the one to tell
		return err
	}
	return s.guard().OpenNested(ctx)
}

// kernelOptions are the plan's, without a layer that would forbid what the user
// has allowed.
func (pl plan) kernelOptions() layers.KernelOptions {
	opt := layers.KernelOptions(pl.KernelOptions)
	if pl.Guard.Off {
		opt.Enforce = kernel.EnforceOff
	}
	return opt
}

// AllowOnce lets one operation of a session's program through, once; see
// layers.AllowOnce. The error wraps superqode.ErrNotFound where ref names no session.
func (m *Manager) AllowOnce(ctx context.Context, dir, ref string, op guard.Operation) (superqode.SessionID, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return superqode.SessionID{}, err
	}
	return l.ID, layers.AllowOnce(ctx, l, op, m.Now())
}
