package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestDiscoverInProcess holds that what is found in process is what git finds, and
// that git is asked where it is not.
func TestDiscoverInProcess(t *testing.T) {
	t.Parallel()
	here := func(f *gittest.Fixture) string { return f.Dir }
	after := func(args ...string) func(*gittest.Fixture) string {
		return func(f *gittest.Fixture) string { f.Git(args...); return f.Dir }
	}
	for name, tt := range map[string]struct {
		make  func(f *gittest.Fixture) (dir string)
		plain bool
	}{
		"usual":         {here, true},
		"subfolder":     {func(f *gittest.Fixture) string { return f.Path("src/deep") }, true},
		"packed":        {func(f *gittest.Fixture) string { f.Git("pack-refs", "--all"); f.Git("gc", "-q"); return f.Dir }, true},
		"detached":      {after("checkout", "-q", "--detach", "feature"), true},
		"branch of dir": {after("checkout", "-q", "-b", "a/b/c"), true},
		"linked": {func(f *gittest.Fixture) string {
			f.Git("worktree", "add", "-q", "-b", "other", f.Home+"/linked", "feature")
			return f.Home + "/linked"
		}, true},
		"link": {func(f *gittest.Fixture) string {
			if err := os.Symlink(f.Dir, f.Home+"/link"); err != nil {
				return ""
			}
			return f.Home + "/link/src"
		}, true},
		"included configuration": {func(f *gittest.Fixture) string {
			f.Write(".git/more", "[core]\n\tautocrlf = input\n")
			f.Git("config", "include.path", "more")
			return f.Dir
		}, true},
		"empty .git in a subfolder": {func(f *gittest.Fixture) string { f.Mkdir("src/.git"); return f.Path("src") }, false},
		"inside the git dir":        {func(f *gittest.Fixture) string { return f.Path(".git/refs") }, false},
		"core.worktree":             {after("config", "core.worktree", "../src"), false},
		"worktree configuration":    {after("sparse-checkout", "set", "src"), false},
		"partial clone":             {after("config", "extensions.partialClone", "origin"), false},
		"unknown format":            {after("config", "core.repositoryFormatVersion", "7"), false},
		"bare":                      {func(f *gittest.Fixture) string { return f.Home + "/remote.git" }, false},
		"none":                      {func(f *gittest.Fixture) string { return f.Home }, false},
		"submodule": {func(f *gittest.Fixture) string {
			f.Git("submodule", "--quiet", "add", f.Home+"/remote.git", "sub")
			return f.Path("sub")
		}, false},
		"empty ref beside packed-refs": {func(f *gittest.Fixture) string {
			f.Git("pack-refs", "--all")
			f.Write(".git/refs/heads/main", "")
			return f.Dir
		}, true},
		"lost commit": {func(f *gittest.Fixture) string {
			f.Write(".git/refs/heads/main", "0123456789012345678901234567890123456789\n")
			return f.Dir
		}, true},
		"alternates": {func(f *gittest.Fixture) string {
			f.Git("clone", "-q", "--shared", f.Dir, f.Home+"/shared")
			return f.Home + "/shared"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			dir := tt.make(f)
			g, err := Locate(f.Env())
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.discoverPlain(t.Context(), dir)
			if errors.Is(err, errAskGit) != !tt.plain {
				t.Fatalf("in process: %v", err)
			}
			if !tt.plain {
				return
			}
			if err != nil || g.Version.Before(MinVersion) {
				t.Fatalf("git %v, %v", g.Version, err)
			}
			want, err := g.discover(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Repo{}, "Git"), cmp.AllowUnexported(Repo{}), cmpopts.IgnoreFields(Repo{}, "config", "plain")); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestDiscoverInProcessTrust holds that a repository of another user is not read in
// process before git has refused it.
func TestDiscoverInProcessTrust(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a repository to another user")
	}
	for _, part := range []string{"", ".git"} {
		f := gittest.Dirty(t)
		if err := os.Chown(filepath.Join(f.Dir, part), 4321, 4321); err != nil {
			t.Fatal(err)
		}
		g, err := Locate(f.Env())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := g.discoverPlain(t.Context(), f.Dir); !errors.Is(err, errAskGit) {
			t.Errorf("%q of another user: %+v, %v", part, r, err)
		}
		f.GitIn(f.Home, "config", "--global", "safe.directory", f.Dir)
		if _, err := g.discoverPlain(t.Context(), f.Dir); err != nil {
			t.Errorf("allowed, %q of another user: %v", part, err)
		}
	}
}

// TestCommitInProcess holds that revisions mean what git takes them for.
func TestCommitInProcess(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*gittest.Fixture){
		"loose":  func(*gittest.Fixture) {},
		"packed": func(f *gittest.Fixture) { f.Git("gc", "-q"); f.Git("pack-refs", "--all") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			f.Git("branch", "v2", "feature")
			f.Git("tag", "v2", "main") // a tag goes before a branch
			f.Git("branch", "sub/x")
			f.Write(".git/odd", f.Git("rev-parse", "feature")+"\n")
			f.Git("branch", "odd", "main")
			f.Git("tag", "of-a-blob", "HEAD:README.md")
			prepare(f)
			g, err := Locate(f.Env())
			if err != nil {
				t.Fatal(err)
			}
			r, err := g.Discover(t.Context(), f.Dir)
			if err != nil {
				t.Fatal(err)
			}
			inProcess := 0
			for _, rev := range []string{"HEAD", "main", "feature", "v1.0.0", "v2", "heads/v2", "refs/heads/v2", "sub/x", "sub", "odd", "refs/heads/odd", "stash", "origin/main", "origin", "of-a-blob",
				f.Git("rev-parse", "feature"), f.Git("rev-parse", "--short", "feature"), f.Git("rev-parse", "HEAD^{tree}"), "HEAD~1", "absent", "refs", "../HEAD", "ORIG_HEAD"} {
				want := ""
				if out, err := f.Try(f.Dir, "rev-parse", "--verify", "--quiet", rev+"^{commit}"); err == nil {
					want = out[:len(out)-1]
				}
				id, err := r.readCommit(rev)
				if err == nil {
					inProcess++
				}
				if err == nil && id != want {
					t.Errorf("%s is %q in process, git says %q", rev, id, want)
				}
				if id, err := r.Commit(t.Context(), rev); id != want || errors.Is(err, superqode.ErrNotFound) != (want == "") {
					t.Errorf("%s is %q, %v, git says %q", rev, id, err, want)
				}
			}
			if inProcess < 10 {
				t.Errorf("only %d revisions were read in process", inProcess)
			}
		})
	}
}
