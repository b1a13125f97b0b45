package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/worktree"
)

// TestWorktree makes worktrees, lists and removes them; then the repository is what it
// was.
func TestWorktree(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	first := f.Commit("first")
	f.Write("a.txt", "two\n")
	f.Commit("second")
	f.Write("a.txt", "three\n")
	f.Write("new.txt", "new\n")
	before := gittest.Fingerprint(t, f.Dir)
	opt := worktree.Options{Repo: f.Dir, Dir: filepath.Join(f.Home, "trees"), Env: f.Env()}
	now, err := worktree.Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	opt.From = "HEAD~1"
	old, err := worktree.Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{now.Path + "/a.txt": "three\n", now.Path + "/new.txt": "new\n", old.Path + "/a.txt": "one\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, want := f.StatusIn(now.Path), f.Status(); got != want {
		t.Errorf("git status prints %q there, and %q in the origin", got, want)
	}
	list, err := worktree.List(t.Context(), f.Dir, f.Env())
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, w := range list {
		if w.ID == old.ID && (w.Head != first || w.Path != old.Path) {
			t.Errorf("listed %+v, want %+v", w, old)
		}
	}
	f.Git("worktree", "lock", now.Path)
	if err := worktree.Remove(t.Context(), now); !errors.Is(err, superqode.ErrLocked) {
		t.Errorf("a locked one: %v", err)
	}
	f.Git("worktree", "unlock", now.Path)
	for range 2 {
		for _, w := range list {
			if err := worktree.Remove(t.Context(), w); err != nil {
				t.Error(err)
			}
		}
	}
	gittest.Same(t, before, gittest.Fingerprint(t, f.Dir))
	if left, err := os.ReadDir(opt.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestWorktreeRefuses(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	opt := worktree.Options{Repo: f.Dir, Dir: filepath.Join(f.Home, "trees"), Env: f.Env()}
	if _, err := worktree.Create(t.Context(), opt); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("without a commit: %v", err)
	}
	f.Write("a.txt", "one\n")
	f.Commit("first")
	opt.From = "nonsense"
	if _, err := worktree.Create(t.Context(), opt); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("of an unknown revision: %v", err)
	}
	if err := worktree.Remove(t.Context(), &worktree.Worktree{Path: f.Dir}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("remove what is none: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "a.txt")); err != nil {
		t.Error(err)
	}
}
