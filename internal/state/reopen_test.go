package state_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/state"
)

// TestReopen holds that superqode finds its sessions again where a program took away
// the right to read them, and that no file is opened through a link.
func TestReopen(t *testing.T) {
	if !gittest.Unprivileged(t) {
		return
	}
	home, other := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "other")
	p := state.Of(filepath.Join(home, "working"), "origin", "/origin")
	id := superqode.NewSessionID(time.Now())
	dir := p.SessionPath(id.String())
	if err := p.Create("/origin", time.Now()); err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(p.StorePath(), "objects", "ab", "c")
	for _, path := range []string{state.RecordPath(dir), object, other} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, p.LockPath()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		object, filepath.Dir(object), p.StorePath(), other, state.RecordPath(dir), dir, p.SessionsPath(), p.Dir, home,
	} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := p.SessionNames(); err != nil || len(names) != 1 {
		t.Errorf("sessions %q, %v", names, err)
	}
	if err := state.ReopenSession(dir); err != nil {
		t.Error(err)
	}
	if err := state.ReopenTree(p.StorePath()); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]os.FileMode{
		home: 0o700, p.SessionsPath(): 0o700, dir: 0o700, state.RecordPath(dir): 0o600, object: 0o600, other: 0,
	} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s is %v, %v", path, st, err)
		}
	}
}
