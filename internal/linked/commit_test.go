package linked

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/internal/gittest"
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
	for attrs, copies := range map[string]bool{"": true, "* text=auto\n": true, "* text eol=crlf\n": false, "* filter=x\n": false} {
		t.Run(attrs, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t)
			f.Write(".gitattributes", attrs)
			for i := range 200 {
				f.Write(gittest.ManyPath(i), fmt.Sprintf("file %d\n", i))
			}
			f.Commit("many")
			f.Settle()
			f.Write(gittest.ManyPath(3), "changed\n")
			f.Write(gittest.ManyPath(4), "file 4\r\n") // clean after conversion, with text=auto
			f.Git("add", gittest.ManyPath(4))
			f.Git("commit", "-q", "--allow-empty", "-m", "crlf")
			later := time.Now().Add(2 * time.Second)
			if err := os.Chtimes(f.Path(".git/index"), later, later); err != nil {
				t.Fatal(err)
			}
			opt := options(t, f, f.Dir, f.Git("rev-parse", "HEAD"))
			res, err := Create(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 200 {
				want := copies && i != 3 && (i != 4 || attrs == "")
				if p := gittest.ManyPath(i); sameTime(t, filepath.Join(opt.Path, p), f.Path(p)) != want {
					t.Errorf("%s: copied %v", p, !want)
				}
			}
			if s := f.StatusIn(opt.Path); s != "" {
				t.Errorf("not clean:\n%s", s)
			}
			checkBase(t, opt, res)
		})
	}
}

func sameTime(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return x.ModTime().Equal(y.ModTime())
}
