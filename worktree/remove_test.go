package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// TestSweep deletes what is hard to delete: folders without permission, links
// out, trees deeper than there are handles, folders of many names.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trash, outside := filepath.Join(dir, "trash"), filepath.Join(dir, "outside")
	write := func(p string) {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "precious"))
	for i := range 3000 {
		write(filepath.Join(trash, "a", fmt.Sprint("many-", i)))
	}
	write(filepath.Join(trash, "b/closed/inner/file"))
	if err := os.Symlink(outside, filepath.Join(trash, "b/link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(trash, "b/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep(t, filepath.Join(trash, "c"), 1500)
	for _, p := range []string{"b/closed/inner", "b/closed", "b"} {
		if err := os.Chmod(filepath.Join(trash, p), map[string]os.FileMode{"b": 0o555}[p]); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := Sweep(t.Context(), trash, time.Nanosecond); done || err != nil {
		t.Errorf("with no time: %v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sweep(ctx, trash, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if done, err := Sweep(t.Context(), trash, 0); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if left, err := os.ReadDir(trash); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error("followed a link")
	}
	if done, err := Sweep(t.Context(), filepath.Join(dir, "none"), 0); !done || err != nil {
		t.Errorf("no trash: %v, %v", done, err)
	}
}

// TestSweepUnprivileged repeats the part that root would pass without trying:
// the test's own binary runs as nobody.
func TestSweepUnprivileged(t *testing.T) {
	if trash := os.Getenv("SUPERQODE_TEST_TRASH"); trash != "" {
		if err := ToTrash(filepath.Join(filepath.Dir(trash), "workspace"), trash); err != nil {
			t.Fatal(err)
		}
		if done, err := Sweep(t.Context(), trash, 0); !done || err != nil {
			t.Fatalf("%v, %v", done, err)
		}
		return
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "sweep") // t.TempDir's own folder could be closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	trash, self := filepath.Join(dir, "trash"), filepath.Join(dir, "test")
	for _, p := range []string{"trash/b/closed/inner", "workspace/readonly/inner"} {
		if err := os.MkdirAll(filepath.Join(dir, p, "file"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, data, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func() ([]byte, error) {
		cmd := exec.Command(self, "-test.run=^TestSweepUnprivileged$")
		cmd.Env, cmd.Dir = append(os.Environ(), "SUPERQODE_TEST_TRASH="+trash), dir
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return cmd.CombinedOutput()
	}
	if os.Getuid() == 0 {
		err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error { return errors.Join(err, os.Lchown(p, 65534, 65534)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	for p, mode := range map[string]os.FileMode{"trash/b/closed/inner": 0, "workspace/readonly/inner": 0o555} {
		for ; p != "trash" && p != "."; p = filepath.Dir(p) {
			if err := os.Chmod(filepath.Join(dir, p), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := run()
	for range 200 { // a process that another test starts at this moment still has the file open for writing
		if !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
		out, err = run()
	}
	if errors.Is(err, os.ErrPermission) {
		t.Skip("nobody but root reaches the temporary folder")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(trash); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// deep nests folders deeper than a path may be long.
func deep(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, openDir, 0)
	for i := 0; err == nil && i < n; i++ {
		name := fmt.Sprint("level-", i)
		if err = unix.Mkdirat(fd, name, 0o755); err == nil {
			next, oerr := unix.Openat(fd, name, openDir, 0)
			_ = unix.Close(fd)
			fd, err = next, oerr
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
}

// What stands in the place of a small file that Create reads may be a FIFO: it
// must not be waited for.
func TestCreateWaitsForNoFIFO(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{includeFile: false, ".git/MERGE_MSG": true} {
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
