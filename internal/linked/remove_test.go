package linked

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

func small(t testing.TB) *gittest.Fixture {
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	f.Commit("first")
	return f
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		f := gittest.Repo(t, "--bare")
		_, err := Create(t.Context(), options(t, f, f.Dir, Working))
		if err == nil || !strings.Contains(err.Error(), "bare") || superqode.Hint(err) == "" {
			t.Errorf("%v", err)
		}
	})
	t.Run("no commit", func(t *testing.T) {
		t.Parallel()
		f := gittest.Repo(t)
		_, err := Create(t.Context(), options(t, f, f.Dir, Working))
		if err == nil || !strings.Contains(superqode.Hint(err), "--snapshot") {
			t.Errorf("%v, %q", err, superqode.Hint(err))
		}
	})
	t.Run("corrupt index", func(t *testing.T) {
		t.Parallel()
		f := small(t)
		f.Write(".git/index", f.Read(".git/index")[:40])
		before := f.Fingerprint()
		opt := options(t, f, f.Dir, Working)
		if _, err := Create(t.Context(), opt); err == nil {
			t.Error("no error")
		}
		nothingStays(t, f, opt, before)
	})
	t.Run("no such commit", func(t *testing.T) {
		t.Parallel()
		f := small(t)
		before := f.Fingerprint()
		opt := options(t, f, f.Dir, strings.Repeat("ab", 20))
		if _, err := Create(t.Context(), opt); err == nil {
			t.Error("no error")
		}
		nothingStays(t, f, opt, before)
	})
	t.Run("place is taken", func(t *testing.T) {
		t.Parallel()
		f := small(t)
		opt := options(t, f, f.Dir, Working)
		if err := os.MkdirAll(filepath.Join(opt.Path, "precious"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(t.Context(), opt); err == nil {
			t.Error("no error")
		}
		if _, err := os.Stat(filepath.Join(opt.Path, "precious")); err != nil {
			t.Error("what was there is gone")
		}
	})
}

func nothingStays(t *testing.T, f *gittest.Fixture, opt Options, before gittest.Print) {
	t.Helper()
	if _, err := os.Lstat(opt.Path); err == nil {
		t.Error("the workspace stays")
	}
	gittest.Same(t, before, f.Fingerprint())
}

// TestCreateCancelled ends the context at many moments; the result is a whole
// workspace or nothing.
func TestCreateCancelled(t *testing.T) {
	t.Parallel()
	f := gittest.Many(t, 300)
	before := f.Fingerprint()
	for i := range 30 {
		opt := options(t, f, f.Dir, Working)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*100*time.Microsecond)
		res, err := Create(ctx, opt)
		cancel()
		if err != nil {
			nothingStays(t, f, opt, before)
			continue
		}
		if s := f.StatusIn(opt.Path); s != "" {
			t.Errorf("not clean:\n%s", s)
		}
		if err := Remove(t.Context(), opt.Repo, res.AdminDir, opt.Path, filepath.Join(f.Home, "trash")); err != nil {
			t.Error(err)
		}
	}
	gittest.Same(t, before, f.Fingerprint())
}

// TestCreateParallel: twenty at once on one repository, each under the lock.
func TestCreateParallel(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	before, status := f.Fingerprint(), f.Status()
	lock := func(ctx context.Context) (func() error, error) {
		return lockfile.Lock(ctx, filepath.Join(f.Home, "lock"))
	}
	var wg sync.WaitGroup
	for range 20 {
		opt := options(t, f, f.Dir, Working)
		opt.Lock = lock
		wg.Go(func() {
			res, err := Create(t.Context(), opt)
			if err != nil {
				t.Error(err)
				return
			}
			if now := f.StatusIn(opt.Path); now != status {
				t.Errorf("status differs: %s", now)
			}
			unlock, err := lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(Remove(t.Context(), opt.Repo, res.AdminDir, opt.Path, filepath.Join(f.Home, "trash")), unlock()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	gittest.Same(t, before, f.Fingerprint())
}

func TestRemove(t *testing.T) {
	t.Parallel()
	f := small(t)
	trash := filepath.Join(f.Home, "trash")
	mine, other := options(t, f, f.Dir, Working), options(t, f, f.Dir, Working)
	a, err := Create(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Create(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	for name, admin := range map[string]string{"another's": b.AdminDir, "the repository": f.Path(".git"), "elsewhere": f.Home, "above": filepath.Join(b.AdminDir, "..")} {
		if err := Remove(t.Context(), mine.Repo, admin, mine.Path, trash); !errors.Is(err, superqode.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Git("worktree", "lock", "--reason", "on a stick", mine.Path)
	if err := Remove(t.Context(), mine.Repo, a.AdminDir, mine.Path, trash); !errors.Is(err, superqode.ErrLocked) || !strings.Contains(err.Error(), "on a stick") {
		t.Errorf("locked: %v", err)
	}
	if err := RemoveLocked(t.Context(), mine.Repo, a.AdminDir, mine.Path, trash); err != nil {
		t.Error(err)
	}
	if out := f.Git("worktree", "list", "--porcelain"); strings.Contains(out, mine.ID.String()) || !strings.Contains(out, other.ID.String()) {
		t.Errorf("git lists:\n%s", out)
	}
	if err := os.RemoveAll(other.Path); err != nil { // the program deleted its workspace
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.AdminDir, "gitdir")); err != nil { // and we died half-way before
		t.Fatal(err)
	}
	if err := Remove(t.Context(), other.Repo, b.AdminDir, other.Path, trash); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(f.Path(".git/worktrees")); err == nil {
		t.Error(".git/worktrees stays")
	}
}

// What stands in the place of a small file that Create reads may be a FIFO: it
// must not be waited for.
func TestCreateWaitsForNoFIFO(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{IncludeFile: false, ".git/MERGE_MSG": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t)
			f.Write("a", "1\n")
			f.Commit("first")
			if err := unix.Mkfifo(f.Path(name), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Create(t.Context(), options(t, f, f.Dir, Working)); (err != nil) != fails {
				t.Errorf("Create: %v", err)
			}
		})
	}
}
