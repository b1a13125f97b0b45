package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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
		if err := Put(filepath.Join(filepath.Dir(trash), "workspace"), trash); err != nil {
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
