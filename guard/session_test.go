package guard_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
)

func sampleState() *guard.SessionState {
	return &guard.SessionState{
		ID: superqode.NewSessionID(time.Unix(1700000000, 0)), WorkTree: true, Origin: "/o", Workspace: "/h/ws",
		GitDirs: []superqode.HostPath{"/o/.git"}, Trees: []superqode.HostPath{"/o"}, Allow: []string{"commit"},
		Git: guard.RealGit{Bin: "/usr/bin/git", ExecPath: "/usr/lib/git-core", Version: "2.39.5"}, HooksPath: "a\xffb",
	}
}

// TestSessionStateRoundTrip: what is saved is found again from a helper's own
// path, paths that are not UTF-8 included.
func TestSessionStateRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := sampleState()
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := guard.StateOf(filepath.Join(dir, "bin", "git"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(guard.SessionState{}, superqode.SessionID{}, superqode.AgentID{})); d != "" {
		t.Error(d)
	}
	if got.Dir() != dir || got.ID != want.ID {
		t.Errorf("dir %s, id %s", got.Dir(), got.ID)
	}
}

// TestBrokenSessionState: a file that is gone, cut or of another version is an
// error, never an empty state.
func TestBrokenSessionState(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"cut": `{"schema_version":1,"session`, "empty": "", "other version": `{"schema_version":7}`, "no git": `{"schema_version":1}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, guard.SessionStateFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if st, err := guard.LoadSessionState(dir); err == nil {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if _, err := guard.LoadSessionState(t.TempDir()); err == nil {
		t.Error("no file: no error")
	}
}

// TestGuardsInPlace: in place, a repository inside the origin is guarded when it
// was there before the session, and the program's own when it was not.
func TestGuardsInPlace(t *testing.T) {
	t.Parallel()
	origin := t.TempDir()
	mine := filepath.Join(origin, "mine", ".git")
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	st := sampleState()
	st.WorkTree, st.Origin, st.Workspace, st.Trees = true, superqode.HostPath(origin), superqode.HostPath(origin), nil
	for when, want := range map[time.Time]bool{time.Now().Add(time.Hour): true, time.Now().Add(-time.Hour): false, {}: true} {
		st.OpenedAt = when
		if got := st.Guards(mine, filepath.Dir(mine)); got != want {
			t.Errorf("opened at %v: %t", when, got)
		}
	}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	st := sampleState()
	for _, tt := range []struct {
		common, tree string
		want         bool
	}{
		{"/o/.git", "/h/ws", true},
		{"/o/.git/modules/lib", "/o/lib", true},
		{"/o/vendor/x/.git", "/o/vendor/x", true},
		{"/elsewhere/.git", "/o", true},
		{"/elsewhere/.git", "/h/ws", true},
		{"/elsewhere/.git", "", false},
		{"/o2/.git", "/o2", false},
		{"/h/ws/t/.git", "/h/ws/t", false},
	} {
		if got := st.Guards(tt.common, tt.tree); got != tt.want {
			t.Errorf("%s %s: %t", tt.common, tt.tree, got)
		}
	}
}
