package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Run opens a session, runs one program in it and ends it. The result is not nil
// as soon as the session was collected; its ExitCode is the program's. The error
// tells what superqode itself could not do, or why the program could not be
// started (*runner.StartError).
//
// A signal before the program has started undoes what was made. While the
// program runs, signals go to it. For those that come later, see EndOptions.
func (m *Manager) Run(ctx context.Context, open OpenOptions, exec program.ExecOptions) (*artifacts.Result, error) {
	open.Owned = true
	s, err := m.openInterruptible(ctx, open, exec.Signals)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.Setup(ctx, open.Setup.With(exec)); err != nil {
		return s.endUnset(ctx, exec, err)
	}
	res, runErr := s.ExecAll(ctx, exec)
	mode.TellLeftBehind(s.Site, res.ExitCode)
	var start *runner.StartError
	failed := res.ExitCode != 0 && !errors.As(runErr, &start) // a program that never started left nothing to look at
	// Nobody but the program can have locked a worktree that is as old as this call.
	result, err := s.End(context.WithoutCancel(ctx), EndOptions{
		Failed: failed, Locked: true, EndApply: EndApply{open.NoRevert, team.NotApplied(res, runErr)}, Signals: exec.Signals,
	})
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
					cancel(&program.InterruptError{Signal: sig})
				}
			case <-opened:
				return
			}
		}
	}()
	s, err := m.Open(ctx, opt)
	close(opened)
	<-watched
	var interrupt *program.InterruptError
	if errors.As(context.Cause(ctx), &interrupt) {
		if err == nil {
			return nil, errors.Join(interrupt, s.made.Discard())
		}
		return nil, interrupt
	}
	return s, err
}

// Create opens a session and sets its workspace up. A session whose setup fails
// is ended, and kept when it is to be kept after failures.
func (m *Manager) Create(ctx context.Context, opt OpenOptions) (*Session, error) {
	s, err := m.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	if _, err := s.Setup(ctx, opt.Setup); err != nil {
		_, err = s.endUnset(ctx, program.ExecOptions{}, err)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// endUnset ends a session whose setup failed, the way every session ends. What
// could not even begin, because the configuration is wrong, is not worth keeping.
func (s *Session) endUnset(ctx context.Context, exec program.ExecOptions, failed error) (*artifacts.Result, error) {
	after := context.WithoutCancel(ctx)
	code := s.ExitCode(failed)
	args := exec.Args
	if args == nil {
		args = []string{}
	}
	err := s.Update(after, func(r *state.Record) { r.Command, r.ExitCode = args, &code })
	end := EndOptions{Failed: true, Locked: true, unset: failed, Signals: exec.Signals}
	if (errors.Is(failed, superqode.ErrUsage) || errors.Is(failed, superqode.ErrNotFound)) && s.Rec.Keep != superqode.KeepAlways {
		end.Keep = superqode.KeepNever
	}
	res, eerr := s.End(after, end)
	if _, ok := errors.AsType[*setup.Error](failed); ok && superqode.Hint(failed) == "" && res != nil {
		if log := artifacts.SessionLog(s.Rec.ID, "setup"); slices.ContainsFunc(res.Artifacts, func(a artifacts.Ref) bool { return a.Path.String() == log }) {
			failed = superqode.WithHint(failed, "cat %s", text.QuotePOSIX(filepath.Join(string(s.Rec.Origin), ".superqode", "qe-artifacts", log)))
		}
	}
	return res, errors.Join(failed, err, eerr)
}

// Setup brings the workspace into the state that opt asks for; see prepare.Setup.
func (s *Session) Setup(ctx context.Context, opt prepare.Options) ([]setup.Step, error) {
	opt.Made = s.made
	return prepare.Setup(ctx, s.Attached, opt)
}
