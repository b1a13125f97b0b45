//go:build failpoint

package linked

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// steps are the points of Create and Remove in their order.
func steps() []string {
	return []string{
		"worktree.add", "worktree.added", "worktree.copy", "worktree.copied", "worktree.index", "worktree.indexed",
		"worktree.remove", "worktree.renamed", "worktree.admin", "worktree.admin:2", "worktree.removed",
	}
}

// TestFailpoints makes and removes a workspace in a process that fails, or dies,
// at each step. After a failure nothing half-made stays; after a death Remove
// brings the origin back to what it was.
func TestFailpoints(t *testing.T) {
	if dir := os.Getenv("SUPERQODE_TEST_ORIGIN"); dir != "" {
		makeAndRemove(t, dir)
		return
	}
	t.Parallel()
	for _, action := range []string{"error", "enospc", "kill"} {
		for _, step := range steps() {
			t.Run(action+" at "+step, func(t *testing.T) {
				t.Parallel()
				f := gittest.Dirty(t)
				opt := options(t, f, f.Dir, Working)
				before := f.Fingerprint()
				cmd := exec.Command(os.Args[0], "-test.run=^TestFailpoints$")
				cmd.Env = f.Env("SUPERQODE_TEST_ORIGIN="+f.Dir, "SUPERQODE_TEST_ID="+opt.ID.String(), "SUPERQODE_TEST_PATH="+opt.Path, "SUPERQODE_FAILPOINT="+step+"="+action)
				out, err := cmd.CombinedOutput()
				if action == "kill" && err == nil {
					t.Fatalf("%s was not reached:\n%s", step, out)
				}
				if action != "kill" && err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				admin := filepath.Join(opt.Repo.CommonDir, "worktrees", opt.ID.String())
				if err := Remove(t.Context(), opt.Repo, admin, opt.Path, filepath.Join(f.Home, "trash")); err != nil {
					t.Error(err)
				}
				gittest.Same(t, before, f.Fingerprint())
				if _, err := os.Lstat(opt.Path); err == nil {
					t.Error("the workspace stays")
				}
			})
		}
	}
}

// makeAndRemove runs in the process that is to fail. An injected error has to
// come back from Create, which leaves nothing, or from Remove.
func makeAndRemove(t *testing.T, dir string) {
	g, err := git.Find(t.Context(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := g.Discover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := superqode.ParseSessionID(os.Getenv("SUPERQODE_TEST_ID"))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Repo: repo, ID: id, Path: os.Getenv("SUPERQODE_TEST_PATH"), From: Working, Format: snapshot.SHA1}
	res, err := Create(t.Context(), opt)
	if err != nil {
		if _, serr := os.Lstat(opt.Path); serr == nil {
			t.Error("the workspace stays")
		}
		if _, serr := os.Lstat(filepath.Join(repo.CommonDir, "worktrees")); serr == nil {
			t.Error("the admin folder stays")
		}
		return
	}
	err = Remove(t.Context(), repo, res.AdminDir, opt.Path, filepath.Join(filepath.Dir(opt.Path), "trash"))
	if err != nil && !errors.Is(err, failpoint.ErrInjected) && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
