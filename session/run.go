package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/team"
)

// InterruptError means that a signal ended the work before the program ran.
type InterruptError struct{ Signal os.Signal }

// Error names the signal.
func (e *InterruptError) Error() string { return "interrupted: " + e.Signal.String() }

// ExitCode returns 128 plus the signal's number.
func (e *InterruptError) ExitCode() int {
	if sig, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	return 130
}

// Run opens a session, runs one program in it and ends it. The result is not nil
// as soon as the session was collected; its ExitCode is the program's. The error
// tells what superqode itself could not do, or why the program could not be
// started (*runner.StartError).
//
// A signal before the program has started undoes what was made. While the
// program runs, signals go to it. On the way down they are ignored: stopping
// half-way would leave more to clear up.
func (m *Manager) Run(ctx context.Context, open OpenOptions, exec program.ExecOptions) (*artifacts.Result, error) {
	open.Owned = true
	s, err := m.openInterruptible(ctx, open, exec.Signals)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.Setup(ctx, open.Setup.with(exec)); err != nil {
		return s.endUnset(ctx, exec, err)
	}
	res, runErr := s.ExecAll(ctx, exec)
	var start *runner.StartError
	failed := res.ExitCode != 0 && !errors.As(runErr, &start) // a program that never started left nothing to look at
	stop := team.Ignore(exec.Signals)
	defer stop()
	// Nobody but the program can have locked a worktree that is as old as this call.
	result, err := s.End(context.WithoutCancel(ctx), EndOptions{Failed: failed, Locked: true, EndApply: EndApply{open.NoRevert, team.NotApplied(res, runErr)}})
	if err != nil && result != nil && len(result.Revert.Differences) > 0 {
		err = fmt.Errorf("%w: %w", superqode.ErrVerification, err) // whatever the reason, what stays is what counts
	}
	return result, errors.Join(runErr, err)
}

// openInterruptible opens a session and undoes it when a signal comes first.
func (m *Manager) openInterruptible(ctx context.Context, opt OpenOptions, signals <-chan os.Signal) (*Session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opened := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case sig := <-signals:
				if team.Ends(sig) {
					cancel(&InterruptError{sig})
				}
			case <-opened:
				return
			}
		}
	}()
	s, err := m.Open(ctx, opt)
	close(opened)
	<-watched
	var interrupt *InterruptError
	if errors.As(context.Cause(ctx), &interrupt) {
		if err == nil {
			return nil, errors.Join(interrupt, s.discard())
		}
		return nil, interrupt
	}
	return s, err
}
