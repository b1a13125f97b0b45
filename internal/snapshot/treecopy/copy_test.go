package treecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// copyTree makes a folder with what copies trip over.
func copyTree(t *testing.T) string {
	src := t.TempDir()
	snaptest.Write(t, src, "a.b/file", "1\n", 0o644) // sorts between a and a/…
	snaptest.Write(t, src, "a/x", "x", 0o600)
	snaptest.Write(t, src, "a/empty", "", 0o664)
	snaptest.Write(t, src, "a/suid", "s", 0o4755)
	snaptest.Write(t, src, "a/ro", "r", 0o444)
	snaptest.Write(t, src, "odd/new\nline", "n", 0o644)
	snaptest.Write(t, src, "odd/latin1-\xe9", "n", 0o644)
	snaptest.Write(t, src, "odd/-dash", "n", 0o777)
	snaptest.Write(t, src, "big", strings.Repeat("0123456789abcdef", 1<<16), 0o640)
	snaptest.Write(t, src, "edge", strings.Repeat("e", copyBuffer), 0o644)
	snaptest.Write(t, src, "locked/in/file", "l", 0o400)
	for i := range 1500 {
		snaptest.Write(t, src, fmt.Sprintf("many/%04d", i), fmt.Sprint(i), 0o644)
	}
	for _, l := range [][2]string{{"a/x", "link"}, {"/nowhere", "dangling"}, {"a", "dirlink"}} {
		if err := os.Symlink(l[0], filepath.Join(src, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(src, "empty/er"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"locked/in", "locked", "empty/er"} {
		if err := os.Chmod(filepath.Join(src, d), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(src, d), 0o755) })
	}
	for i, p := range []string{"a/x", "link", "a", "locked", "empty/er", "many"} {
		ts := []unix.Timespec{{Sec: 1500000000, Nsec: 5}, {Sec: 1600000000 + int64(i), Nsec: 123456789}}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(src, p), ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
	return src
}

func TestCopy(t *testing.T) {
	t.Parallel()
	src := copyTree(t)
	for _, ids := range []bool{true, false} {
		for _, workers := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("ids=%v workers=%d", ids, workers), func(t *testing.T) {
				t.Parallel()
				from, dst := snaptest.Walk(t, src, ids), t.TempDir()
				from.Taken = time.Now().Add(time.Hour) // ids known are to be believed
				got, problems, err := Copy(t.Context(), from, dst, CopyOptions{Workers: workers})
				if err != nil || len(problems) > 0 {
					t.Fatal(err, problems)
				}
				t.Cleanup(func() { snaptest.Unlock(dst) })
				want := snaptest.Walk(t, src, true)
				snaptest.Same(t, want, got, true)
				there := snaptest.Walk(t, dst, true)
				snaptest.Same(t, there, got, true)
				for i := range got.Entries {
					if got.Entries[i].Stat != there.Entries[i].Stat {
						t.Errorf("%q: stat %+v, on disk %+v", got.Entries[i].Path, got.Entries[i].Stat, there.Entries[i].Stat)
					}
				}
			})
		}
	}
}

func TestCopyWithoutFolderEntries(t *testing.T) {
	t.Parallel()
	src, dst := t.TempDir(), t.TempDir()
	snaptest.Write(t, src, "a/b/c/file", "x", 0o644)
	snaptest.Write(t, src, "a/b.c", "x", 0o644)
	want := snaptest.Walk(t, src, true)
	files := &snapshot.Snapshot{Root: src, Format: snapshot.SHA1, Taken: want.Taken}
	for _, e := range want.Entries {
		if e.Kind != snapshot.Dir {
			files.Entries = append(files.Entries, e)
		}
	}
	got, problems, err := Copy(t.Context(), files, dst, CopyOptions{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	snaptest.Same(t, want, got, true)
}

func TestCopyProblems(t *testing.T) {
	t.Parallel()
	src, dst := t.TempDir(), t.TempDir()
	for _, p := range []string{"gone", "kept", "changed", "dir/gone/file", "dir/kept", "tofifo", "tolink"} {
		snaptest.Write(t, src, p, "contents of "+p, 0o644)
	}
	if err := syscall.Mkfifo(filepath.Join(src, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	from := snaptest.Walk(t, src, true)
	for _, p := range []string{"gone", "dir/gone", "tofifo", "tolink"} {
		if err := os.RemoveAll(filepath.Join(src, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(src, "tofifo"), 0o644), os.Symlink("kept", filepath.Join(src, "tolink"))); err != nil {
		t.Fatal(err)
	}
	snaptest.Write(t, src, "changed", "now something longer than it was at the scan", 0o755)
	got, problems, err := Copy(t.Context(), from, dst, CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, string(p.Path))
		if (p.Path == "fifo") != errors.Is(p, ErrSpecial) {
			t.Error(p)
		}
	}
	if s := strings.Join(paths, " "); s != "dir/gone fifo gone tofifo tolink" {
		t.Errorf("problems: %s", s)
	}
	snaptest.Same(t, snaptest.Walk(t, dst, true), got, true)
	if e := got.Find("changed"); e == nil || e.Perm != 0o755 || e.Size != 44 {
		t.Errorf("changed: %+v", e)
	}
}

func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	snaptest.Write(t, src, "f", "x", 0o644)
	for _, paths := range [][]superqode.RelPath{{".."}, {"a/../b"}, {"/x"}, {"b", "a"}, {"a", "a"}, {"a\x00b"}, {""}, {"a/"}, {"f", "f/x"}} {
		s := &snapshot.Snapshot{Root: src, Format: snapshot.SHA1}
		for _, p := range paths {
			s.Entries = append(s.Entries, snapshot.Entry{Path: p, Kind: snapshot.File})
		}
		if _, _, err := Copy(t.Context(), s, t.TempDir(), CopyOptions{}); err == nil {
			t.Errorf("%q copied", paths)
		}
	}
	dst := t.TempDir()
	snaptest.Write(t, dst, "f", "mine", 0o644)
	if _, _, err := Copy(t.Context(), snaptest.Walk(t, src, true), dst, CopyOptions{}); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dst, "f")); string(b) != "mine" {
		t.Errorf("overwritten: %q", b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Copy(ctx, snaptest.Walk(t, src, true), t.TempDir(), CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCopySparse(t *testing.T) {
	t.Parallel()
	src, dst := t.TempDir(), t.TempDir()
	for _, size := range []int64{100_000, 64 << 20} {
		f, err := os.Create(filepath.Join(src, fmt.Sprint(size)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte("in the middle"), size/2)
		if err := errors.Join(err, f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got, problems, err := Copy(t.Context(), snaptest.Walk(t, src, false), dst, CopyOptions{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	snaptest.Same(t, snaptest.Walk(t, src, true), got, true)
	snaptest.Same(t, snaptest.Walk(t, dst, true), got, true)
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(src+"/67108864", &a), unix.Stat(dst+"/67108864", &b)); err != nil {
		t.Fatal(err)
	}
	if b.Blocks > a.Blocks+64 {
		t.Errorf("%d blocks of %d", b.Blocks, a.Blocks)
	}
}

func TestCopyDeep(t *testing.T) {
	t.Parallel()
	src, dst := t.TempDir(), t.TempDir()
	t.Cleanup(func() { _ = exec.Command("rm", "-rf", src, dst).Run() })
	name := strings.Repeat("d", 100)
	fd, err := unix.Open(src, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &snapshot.Snapshot{Root: src, Format: snapshot.SHA1, Taken: time.Now()}
	path := ""
	for range 200 {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd, path = next, strings.TrimPrefix(path+"/"+name, "/")
		s.Entries = append(s.Entries, snapshot.Entry{Path: superqode.RelPath(path), Kind: snapshot.Dir, Perm: 0o755})
	}
	if err := errors.Join(unix.Symlinkat("t", fd, "leaf"), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	s.Entries = append(s.Entries, snapshot.Entry{Path: superqode.RelPath(path + "/leaf"), Kind: snapshot.Link})
	got, problems, err := Copy(t.Context(), s, dst, CopyOptions{})
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	if e := got.Entries[200]; len(got.Entries) != 201 || e.Link != "t" || e.ID != snapshot.SHA1.HashBlob([]byte("t")) {
		t.Errorf("%d entries", len(got.Entries))
	}
}

// TestCopyDiskFull mounts a tiny tmpfs in a re-run under unshare.
func TestCopyDiskFull(t *testing.T) {
	if dir := os.Getenv("SNAPSHOT_TEST_SMALL_DISK"); dir != "" {
		src := t.TempDir()
		snaptest.Write(t, src, "a/f", strings.Repeat("x", 3<<20), 0o644)
		_, _, err := Copy(t.Context(), snaptest.Walk(t, src, true), dir, CopyOptions{})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%v", err)
		}
		return
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "-r", "sh", "-c", `mount -t tmpfs -o size=1m none "$1" || exit 77; exec "$2" -test.run '^TestCopyDiskFull$'`, "sh", dir, os.Args[0])
	cmd.Env = append(os.Environ(), "SNAPSHOT_TEST_SMALL_DISK="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil && (errors.Is(err, exec.ErrNotFound) || cmd.ProcessState.ExitCode() == 77 || bytes.Contains(out, []byte("unshare"))) {
		t.Skipf("no mount of one's own here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
