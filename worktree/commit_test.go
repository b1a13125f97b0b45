package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/snapshot"
)

// TestCreateCommit compares the workspace of every case's HEAD, and of the
// commit before, with what git worktree add makes of them.
func TestCreateCommit(t *testing.T) {
	t.Parallel()
	for name, setup := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setup(t)
			for _, rev := range []string{"HEAD", "HEAD^"} {
				out, err := o.Try(o.dir, "rev-parse", "--quiet", "--verify", rev)
				if err != nil {
					continue // a root commit
				}
				compareCommit(t, o, out[:len(out)-1])
			}
		})
	}
}

func compareCommit(t *testing.T, o origin, commit string) {
	t.Helper()
	opt := options(t, o.Fixture, o.dir, commit)
	before, times := gittest.Fingerprint(t, o.dir), gittest.Times(t, o.dir)
	res, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	checkOrigin(t, o, opt, before, times)
	if stale := o.GitIn(opt.Path, "diff-files", "--name-only"); stale != "" {
		t.Errorf("entries that git has to read again:\n%s", stale)
	}
	if s := o.StatusIn(opt.Path); s != "" {
		t.Errorf("not clean:\n%s", s)
	}
	if head := o.GitIn(opt.Path, "rev-parse", "HEAD"); head != commit || res.Head != commit {
		t.Errorf("HEAD is %s, told as %s", head, res.Head)
	}
	checkBase(t, opt, res)
	theirs := filepath.Join(o.Home, "theirs-"+commit)
	o.GitIn(o.dir, "-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "--detach", theirs, commit)
	if diff := cmp.Diff(gittest.Fingerprint(t, theirs, ".git"), gittest.Fingerprint(t, opt.Path, ".git"), cmp.FilterPath(isCommon, cmp.Ignore())); diff != "" {
		t.Errorf("git makes something else of %s (-):\n%s", commit, diff)
	}
	if diff := cmp.Diff(o.GitIn(theirs, "ls-files", "-s", "-v"), o.GitIn(opt.Path, "ls-files", "-s", "-v")); diff != "" {
		t.Errorf("index differs:\n%s", diff)
	}
	o.GitIn(o.dir, "worktree", "remove", "--force", theirs)
	removeAgain(t, o, opt, res, before)
}

// isCommon leaves the shared git dir out of a comparison of two worktrees: it is
// one folder, seen from both.
func isCommon(p cmp.Path) bool {
	if len(p) == 0 {
		return false
	}
	i, ok := p.Last().(cmp.MapIndex)
	return ok && len(i.Key().String()) >= 7 && i.Key().String()[:7] == "COMMON/"
}

// TestCreateCommitCopies: what the origin has unmodified is copied, times and
// all, and only the rest is git's work.
func TestCreateCommitCopies(t *testing.T) {
	t.Parallel()
	f := gittest.Many(t, 200)
	f.Write(gittest.ManyPath(3), "changed\n")
	opt := options(t, f, f.Dir, f.Git("rev-parse", "HEAD"))
	res, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		p := gittest.ManyPath(i)
		here, err := os.Stat(filepath.Join(opt.Path, p))
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.Stat(f.Path(p))
		if err != nil {
			t.Fatal(err)
		}
		if same := here.ModTime().Equal(there.ModTime()); same != (i != 3) {
			t.Errorf("%s: copied %v", p, same)
		}
	}
	if e := res.Base.Find(gittest.ManyPath(3)); e == nil || e.Kind != snapshot.File || e.ID.IsZero() {
		t.Errorf("checked out file in base: %+v", e)
	}
}
