package attach

import (
	"context"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Usable reports why nothing can be run in the session.
func (s *Attached) Usable() error {
	if s.Rec.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", s.Rec.ID)
	}
	if s.unlock == nil { // who holds it may take the workspace away at any moment
		return s.InUse()
	}
	return nil
}

// Release ends the runs of a session that are under way, so that it can be ended,
// and waits until their supervisors have let go of it.
func (s *Attached) Release(ctx context.Context, grace time.Duration) error {
	if err := program.KillRuns(ctx, &state.Listed{Record: s.Rec, Dir: s.Folder}, grace); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	for deadline := time.Now().Add(program.KillWait); ; {
		held, err := lockfile.IsHeld(state.LockPath(s.Folder))
		if err != nil || !held || time.Now().After(deadline) {
			return err // who still holds it is named by what comes next
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Exec runs one program in the session's workspace and returns when it and
// everything that it started have ended; see Program.Exec.
func (s *Attached) Exec(ctx context.Context, opt program.ExecOptions) (runner.Result, error) {
	if err := s.Usable(); err != nil {
		return runner.Result{}, err
	}
	return s.Program.Exec(ctx, opt)
}

// ExecAll runs what opt asks for: one program, or its blocks one after the other;
// see Program.ExecAll.
func (s *Attached) ExecAll(ctx context.Context, opt program.ExecOptions) (runner.Result, error) {
	if err := s.Usable(); err != nil {
		return runner.Result{}, err
	}
	return s.Program.ExecAll(ctx, opt)
}
