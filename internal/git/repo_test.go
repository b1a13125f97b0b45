package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T, f *gittest.Fixture) (dir string, want git.Repo)
	}{
		{"top", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			return f.Dir, git.Repo{TopLevel: f.Dir, GitDir: f.Path(".git"), CommonDir: f.Path(".git")}
		}},
		{"subfolder", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			f.Mkdir("a/b")
			return f.Path("a/b"), git.Repo{TopLevel: f.Dir, GitDir: f.Path(".git"), CommonDir: f.Path(".git"), Prefix: "a/b/"}
		}},
		{"through a link", func(t *testing.T, f *gittest.Fixture) (string, git.Repo) {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(f.Dir, link); err != nil {
				t.Fatal(err)
			}
			return link, git.Repo{TopLevel: f.Dir, GitDir: f.Path(".git"), CommonDir: f.Path(".git")}
		}},
		{"linked worktree", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			dir := filepath.Join(f.Home, "linked")
			f.Git("worktree", "add", "-q", "--detach", dir)
			return dir, git.Repo{TopLevel: dir, GitDir: f.Path(".git/worktrees/linked"), CommonDir: f.Path(".git")}
		}},
		{"subfolder of a linked worktree", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			dir := filepath.Join(f.Home, "linked")
			f.Git("worktree", "add", "-q", "--detach", dir)
			return filepath.Join(dir, "src"), git.Repo{TopLevel: dir, GitDir: f.Path(".git/worktrees/linked"), CommonDir: f.Path(".git"), Prefix: "src/"}
		}},
		{"bare", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			dir := filepath.Join(f.Home, "bare.git")
			f.Git("init", "-q", "--bare", dir)
			return dir, git.Repo{GitDir: dir, CommonDir: dir, Bare: true}
		}},
		{"linked worktree of a bare one", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			bare, dir := filepath.Join(f.Home, "bare.git"), filepath.Join(f.Home, "linked")
			f.Git("clone", "-q", "--bare", f.Dir, bare)
			f.GitIn(bare, "worktree", "add", "-q", "--detach", dir)
			return dir, git.Repo{TopLevel: dir, GitDir: filepath.Join(bare, "worktrees/linked"), CommonDir: bare}
		}},
		{"submodule", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			f.Git("submodule", "--quiet", "add", f.Dir, "sub")
			return f.Path("sub/src"), git.Repo{TopLevel: f.Path("sub"), GitDir: f.Path(".git/modules/sub"), CommonDir: f.Path(".git/modules/sub"), Prefix: "src/"}
		}},
		{"separate git dir", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			dir, gitDir := filepath.Join(f.Home, "work"), filepath.Join(f.Home, "elsewhere")
			f.Git("init", "-q", "--separate-git-dir", gitDir, dir)
			return dir, git.Repo{TopLevel: dir, GitDir: gitDir, CommonDir: gitDir}
		}},
		{"newline in the path", func(_ *testing.T, f *gittest.Fixture) (string, git.Repo) {
			dir := filepath.Join(f.Home, "new\nline\n", "sub\nfolder")
			f.Git("init", "-q", filepath.Dir(dir))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			top := filepath.Dir(dir)
			return dir, git.Repo{TopLevel: top, GitDir: filepath.Join(top, ".git"), CommonDir: filepath.Join(top, ".git"), Prefix: "sub\nfolder/"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t)
			f.Write("src/main.go", "package main\n")
			f.Commit("first")
			dir, want := tt.make(t, f)
			want.ObjectFormat = "sha1"
			got, err := find(t, f.Env()).Discover(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, *got, cmpopts.IgnoreFields(git.Repo{}, "Git"), cmpopts.IgnoreUnexported(git.Repo{})); d != "" {
				t.Error(d)
			}
			if want := strings.Contains(tt.name, "linked"); got.Linked() != want {
				t.Errorf("linked is %v", got.Linked())
			}
		})
	}
}

// TestDiscoverRelative holds that a relative directory gives absolute paths too.
func TestDiscoverRelative(t *testing.T) {
	f := gittest.Repo(t)
	f.Mkdir("sub")
	t.Chdir(f.Dir)
	for _, dir := range []string{".", "sub"} {
		got, err := find(t, f.Env()).Discover(t.Context(), dir)
		if err != nil || got.TopLevel != f.Dir || got.GitDir != f.Path(".git") || got.Linked() {
			t.Errorf("%s: %+v, %v", dir, got, err)
		}
	}
}

func TestDiscoverSHA256(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t, "--object-format=sha256")
	r, err := find(t, f.Env()).Discover(t.Context(), f.Dir)
	if err != nil || r.ObjectFormat != "sha256" {
		t.Fatalf("%+v, %v", r, err)
	}
	want := f.Commit("first")
	if got, err := r.Head(t.Context()); err != nil || got != want {
		t.Errorf("head is %s, %v", got, err)
	}
}

func TestDiscoverRefuses(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	plain := gittest.Plain(t)
	plain.Write("file", "")
	g := find(t, f.Env())
	for _, tt := range []struct {
		name, dir, text, hint string
		is                    error
	}{
		{"no repository", plain.Dir, "not a git repository", "", git.ErrNoRepository},
		{"no such folder", plain.Path("absent"), "no such file", "", os.ErrNotExist},
		{"a file", plain.Path("file"), "not a directory", "", nil},
		{"inside the git dir", f.Path(".git"), "is inside a git directory", "-C", nil},
		{"deep inside the git dir", f.Path(".git/refs"), "is inside a git directory", "-C", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := g.Discover(t.Context(), tt.dir)
			if err == nil || !strings.Contains(err.Error(), tt.text) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error is %v", err)
			}
			if !strings.Contains(superqode.Hint(err), tt.hint) {
				t.Errorf("hint is %q", superqode.Hint(err))
			}
		})
	}
}

func TestDiscoverDubiousOwnership(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a repository to another user")
	}
	f := gittest.Repo(t)
	f.Mkdir("sub")
	for _, p := range []string{f.Dir, f.Path(".git")} {
		if err := os.Chown(p, 4321, 4321); err != nil {
			t.Fatal(err)
		}
	}
	g := find(t, f.Env())
	_, err := g.Discover(t.Context(), f.Path("sub"))
	if err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Fatalf("error is %v", err)
	}
	hint := superqode.Hint(err)
	if want := "git config --global --add safe.directory " + f.Dir; hint != want {
		t.Fatalf("hint is %q, want %q", hint, want)
	}
	f.GitIn(f.Home, strings.Fields(hint)[1:]...) // the hint helps
	if _, err := g.Discover(t.Context(), f.Path("sub")); err != nil {
		t.Error(err)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	r, err := find(t, f.Env()).Discover(t.Context(), f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if head, err := r.Head(t.Context()); err != nil || head != "" {
		t.Errorf("head before the first commit is %q, %v", head, err)
	}
	first := f.Commit("first")
	f.Git("tag", "-a", "-m", "x", "v1")
	second := f.Commit("second")
	for rev, want := range map[string]string{"HEAD": second, "HEAD~1": first, "v1": first, "main": second, first[:10]: first, ":/fir": first} {
		if got, err := r.Commit(t.Context(), rev); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %s", rev, got, err, want)
		}
	}
	for _, rev := range []string{"", "absent", "-1", "--all", "HEAD:README", "HEAD^{tree}", "HEAD..main"} {
		if got, err := r.Commit(t.Context(), rev); !errors.Is(err, superqode.ErrNotFound) || got != "" {
			t.Errorf("%q is %q, %v", rev, got, err)
		}
	}
}
