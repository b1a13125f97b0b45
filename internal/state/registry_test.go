package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

// TestLoadWhileOpened holds that a session which is opened and let go of while others look
// at it is never taken for one whose process died: a recovery would end it.
func TestLoadWhileOpened(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[string]
	stop, looked := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { looked <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			dir := current.Load()
			if dir == nil {
				continue
			}
			if l, err := state.Load(*dir); err == nil {
				if n++; l.Dead {
					t.Errorf("%s is %s and taken for dead", l.ID, l.State)
				}
			}
		}
	}()
	sessions := filepath.Join(t.TempDir(), "sessions")
	for range 300 {
		id := superqode.NewSessionID(time.Now())
		dir := filepath.Join(sessions, id.String())
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		unlock, err := lockfile.TryLock(state.LockPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		rec := &state.Record{SchemaVersion: state.SchemaVersion, ID: id, Mode: superqode.ModeDirectory, State: superqode.StateCreated,
			Keep: superqode.KeepFailure, Origin: "/origin", Workspace: "/workspace"}
		err = state.WriteRecord(dir, rec)
		current.Store(&dir)
		if rec.State = superqode.StateActive; err == nil {
			err = state.WriteRecord(dir, rec)
		}
		if err := errors.Join(err, unlock()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if n := <-looked; n == 0 {
		t.Error("nothing was looked at")
	}
}
