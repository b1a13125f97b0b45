package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// withSubmodule is a repository with one submodule checked out and one that is
// only registered.
func withSubmodule(t *testing.T) *gittest.Fixture {
	t.Helper()
	f := gittest.Repo(t)
	lib := filepath.Join(f.Home, "lib")
	f.Git("init", "-q", lib)
	for _, n := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(lib, n), []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
		f.GitIn(lib, "add", "-A")
		f.GitIn(lib, "commit", "-q", "-m", n)
	}
	f.Write("README.md", "top\n")
	f.Git("submodule", "--quiet", "add", lib, "here")
	f.Git("submodule", "--quiet", "add", lib, "later")
	f.Commit("with submodules")
	f.Git("submodule", "--quiet", "deinit", "-f", "later")
	f.Remove(".git/modules/later")
	f.Write("here/one", "edited\n")
	return f
}

// TestSubmodules: submodules are the user's repositories, too; to fetch and check
// one out is allowed.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	f := withSubmodule(t)
	s := newSession(t, f, f.Dir, nil)
	git := realGit(t)
	before := gittest.Fingerprint(t, f.Dir, ".git/index", ".git/modules/here/index")
	for _, line := range []string{
		"-C here reset --hard", "-C here commit -qam x", "-C here checkout -- .", "-C here stash", "-C here clean -fdx; GIT -C here reset --hard", "submodule foreach 'git reset --hard'",
		"submodule foreach 'GIT checkout -f'", "submodule foreach --recursive git stash", "submodule update --force", "submodule deinit -f here", "-c submodule.here.update='!git reset --hard' submodule update here; GIT -C here reset --hard",
		"-C here update-ref refs/heads/main HEAD~1", "-C here update-ref -d refs/heads/main", "--git-dir=.git/modules/here --work-tree=here reset --hard", "commit -qam x", "rm -rf here", "checkout --recurse-submodules -f HEAD",
	} {
		r := s.sh(f.Dir, git+" "+strings.ReplaceAll(line, "GIT ", git+" "))
		if d := before.Diff(gittest.Fingerprint(t, f.Dir, ".git/index", ".git/modules/here/index")); !r.refused() || len(d) > 0 {
			t.Errorf("%s: exit code %d, %v\n%s", line, r.code, d, r.errOut)
		}
	}
	for _, line := range []string{"submodule status", "submodule --quiet foreach 'git status -s'", "submodule update --init here", "status", "diff --submodule=log", "submodule --quiet update --init --recursive", "-C later log --oneline", "submodule --quiet update later", "-C later checkout -q HEAD~1", "submodule --quiet update later"} {
		if r := s.sh(f.Dir, git+" "+line); r.code != 0 || strings.Contains(r.errOut, "superqode") {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.errOut)
		}
	}
	if _, err := os.Lstat(f.Path("later/two")); err != nil {
		t.Error(err)
	}
}

// TestNestedRepositories: an isolated session guards what lies in the user's tree,
// and nothing that lies in its own workspace.
func TestNestedRepositories(t *testing.T) {
	t.Parallel()
	f := userRepo(t)
	f.Git("init", "-q", f.Path("vendor/nested"))
	f.GitIn(f.Path("vendor/nested"), "commit", "-q", "--allow-empty", "-m", "x")
	workspace := filepath.Join(f.Dir, "../side")
	s := newSession(t, f, workspace, func(st *guard.SessionState) {
		st.WorkTree, st.Workspace = true, superqode.HostPath(filepath.Join(filepath.Dir(f.Dir), "side"))
	})
	git := realGit(t)
	for _, line := range []string{"-C " + f.Path("vendor/nested") + " commit -q --allow-empty -m y", "-C " + f.Dir + " reset --hard", "commit -q --allow-empty -m y", "-C " + f.Dir + " branch -D feature"} {
		if r := s.sh(workspace, git+" "+line); !r.refused() {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.errOut)
		}
	}
	if r := s.sh(workspace, strings.ReplaceAll("set -e; GIT init -q own; cd own; GIT commit -q --allow-empty -m x; GIT reset -q --hard; GIT branch b; GIT branch -D b; GIT stash; GIT checkout -q -f", "GIT ", git+" ")); r.code != 0 {
		t.Errorf("a repository of the session's own: exit code %d\n%s", r.code, r.errOut)
	}
	if list := s.attempts(); len(list) != 4 {
		t.Errorf("%d attempts", len(list))
	}
}
