package guard_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestRepositoryWithANewline: a name that breaks a line of git's answer hides
// neither the session's repository nor that another one is another one.
func TestRepositoryWithANewline(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	f := gittest.Plain(t)
	for _, dir := range []string{"own\nrepo", "other\nrepo", "other\n"} {
		f.Git("init", "-q", dir)
	}
	st := sampleState()
	st.Git.Bin, st.GitDirs, st.Trees = superqode.HostPath(bin), []superqode.HostPath{superqode.HostPath(filepath.Join(f.Dir, "own\nrepo", ".git"))}, nil
	r, guarded := st.Resolver(f.Env())
	for dir, want := range map[string]string{"own\nrepo": guarded, "other\nrepo": f.Dir + "/other\nrepo/.git", "other\n": f.Dir + "/other\n/.git", "own\nrepo/.git": guarded} {
		if got, known := r.Repository(t.Context(), guard.At{Dir: filepath.Join(f.Dir, dir)}); got != want || !known {
			t.Errorf("%q: %q %t, want %q", dir, got, known, want)
		}
	}
}
