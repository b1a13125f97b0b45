//go:build failpoint

package life

import (
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// commitsTest opens a session that has committed on its worktree's HEAD, in a
// repository with work that is not committed, in a path of the commits and beside.
func commitsTest(t *testing.T) *applyTest {
	t.Helper()
	f := gittest.Repo(t)
	for _, name := range []string{"a.txt", "b.txt", "gone.txt", "own.txt"} {
		f.Write(name, "first contents of "+name+"\n")
	}
	f.Commit("first")
	f.Write("a.txt", "edited by the user\n")
	f.Write("own.txt", "the user's alone\n")
	f.Write("untracked.txt", "untracked\n")
	return openApply(t, f, superqode.ModeWorktree, func(ws *gittest.Fixture) {
		ws.Write("a.txt", "edited by the user\nand by the session\n")
		ws.Write("untracked.txt", "untracked, and more\n")
		ws.Git("add", "a.txt", "untracked.txt")
		ws.Git("commit", "-q", "-m", "one")
		ws.Write("b.txt", "changed by the session\n")
		ws.Write("new/file.txt", "new\n")
		ws.Remove("gone.txt")
		ws.Git("add", "b.txt", "new", "gone.txt")
		ws.Git("commit", "-q", "-m", "two")
	})
}

// state is what of an origin is the user's: files, HEAD, refs, what is staged.
func (a *applyTest) state() string {
	var b strings.Builder
	for _, args := range [][]string{{"rev-parse", "HEAD"}, {"symbolic-ref", "HEAD"}, {"for-each-ref"}, {"ls-files", "-s"}, {"status", "--porcelain"}} {
		b.WriteString(a.Git(args...))
	}
	return b.String()
}

// Killed anywhere, the same command finishes; failing anywhere before the end,
// everything is as it was.
func TestApplyCommitsAtEveryPoint(t *testing.T) {
	t.Parallel()
	good := commitsTest(t)
	if code, out := good.child("apply-commits"); code != 0 {
		t.Fatalf("without a fault: exit code %d\n%s", code, out)
	}
	after := noGit(good.tree())
	for _, point := range []string{"commits.half", "commits.moved", "commits.indexed", "commits.applied"} {
		for _, action := range []string{"kill", "error"} {
			t.Run(point+"="+action, func(t *testing.T) {
				t.Parallel()
				a := commitsTest(t)
				before, was := noGit(a.tree()), a.state()
				code, out := a.child("apply-commits", "SUPERQODE_FAILPOINT="+point+"="+action)
				if action == "error" && point == "commits.half" {
					if code == 0 {
						t.Errorf("the fault was passed over:\n%s", out)
					}
					gittest.Same(t, before, noGit(a.tree()))
					if now := a.state(); now != was {
						t.Errorf("was\n%s\nis\n%s", was, now)
					}
				}
				if code, out := a.child("apply-commits"); code != 0 {
					t.Errorf("afterwards: exit code %d\n%s", code, out)
				}
				gittest.Same(t, after, noGit(a.tree()))
				if log := a.Git("log", "--format=%s", "-3"); log != "two\none\nfirst\n" && log != "two\none\nfirst" {
					t.Errorf("the log is %q", log)
				}
				if st := a.Git("status", "--porcelain"); strings.TrimSpace(st) != "M own.txt" {
					t.Errorf("status is %q", st)
				}
				a.checkClean()
			})
		}
	}
}
