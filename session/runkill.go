package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// killRequest asks a run's supervisor to end it.
type killRequest struct {
	GraceMS int64 `json:"grace_ms"`
}

// killHandler passes a request to end the run on to the runner. Any process of the
// session may ask: it could end the program by a signal as well.
func killHandler(kill chan<- time.Duration) supervisor.Handler {
	return func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		var q killRequest
		if err := json.Unmarshal(args, &q); err != nil || q.GraceMS < 0 || q.GraceMS > time.Hour.Milliseconds() {
			return nil, superqode.Errorf(superqode.ErrUsage, "run.kill: grace_ms must be between 0 and 3600000")
		}
		select {
		case kill <- time.Duration(q.GraceMS) * time.Millisecond:
		case <-time.After(time.Second): // the program is at its end already
		case <-ctx.Done():
		}
		return struct{}{}, nil
	}
}

// killWait is how long a run may take to end after its grace: what hangs in the
// kernel is given up by the runner after ten seconds.
const killWait = 20 * time.Second

// KillRun ends a run's whole tree: TERM, then KILL after the grace. It returns the
// run as it ended. Of a run whose supervisor is dead what is left is ended. The
// error wraps ErrNotFound when there is no such run or it has ended.
func KillRun(ctx context.Context, l *state.Listed, number int, grace time.Duration) (RunRecord, error) {
	run, err := FindRun(l, number)
	if err != nil {
		return run, err
	}
	switch run.State {
	case RunExited:
		return run, superqode.Errorf(superqode.ErrNotFound, "run %d of session %s has ended already", run.Run, l.ID)
	case RunDead:
		_, err := runner.EndMarked(marker(filepath.Join(l.Dir, "tmp", "run-"+strconv.Itoa(run.Run))))
		return run, err
	}
	err = supervisor.CallSocket(ctx, socketOf(l.Dir, run.Run), "run.kill", killRequest{grace.Milliseconds()}, &struct{}{})
	if err != nil && !errors.Is(err, superqode.ErrNotFound) { // not found: it ended this very moment
		return run, err
	}
	for deadline := time.Now().Add(grace + killWait); ; {
		if run, err = FindRun(l, run.Run); err != nil || run.State != RunRunning {
			return run, err
		}
		if time.Now().After(deadline) {
			return run, superqode.Errorf(superqode.ErrLocked, "run %d of session %s did not end", run.Run, l.ID)
		}
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// KillRuns ends all runs of a session that are under way.
func KillRuns(ctx context.Context, l *state.Listed, grace time.Duration) error {
	runs, err := Runs(l)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.State != RunRunning {
			continue
		}
		if _, kerr := KillRun(ctx, l, r.Run, grace); kerr != nil && !errors.Is(kerr, superqode.ErrNotFound) {
			err = errors.Join(err, kerr)
		}
	}
	return err
}
