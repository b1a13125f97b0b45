package treecopy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// whole scans a folder and knows all contents.
func whole(t *testing.T, dir string) *snapshot.Snapshot {
	return snaptest.Scan(t, dir, snapshot.ScanOptions{})
}

func paths(s *snapshot.Snapshot) []superqode.RelPath {
	var list []superqode.RelPath
	for i := range s.Entries {
		list = append(list, s.Entries[i].Path)
	}
	return list
}

func TestEraseDeletesWhatItWasToldOf(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"a": "1", "d/e/f": "2", "d/e/g": "3", "link": "-> d", "keep/x": "4", "keep/y": "5"})
	snaptest.Must(t, unix.Mkfifo(filepath.Join(dir, "d/pipe"), 0o600))
	s := whole(t, dir)
	entries := slices.DeleteFunc(slices.Clone(s.Entries), func(e snapshot.Entry) bool { return e.Path == "keep/y" })
	snaptest.Must(t, Erase(t.Context(), dir, entries))
	if left := paths(whole(t, dir)); !slices.Equal(left, []superqode.RelPath{"keep", "keep/y"}) { // a folder with something in it stays
		t.Errorf("left: %q", left)
	}
	snaptest.Must(t, Erase(t.Context(), dir, entries)) // what is gone is gone
	snaptest.Must(t, Erase(t.Context(), filepath.Join(dir, "not", "there"), nil))
}

func TestEraseLeavesWhatMoved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"written": func(t *testing.T, dir string) {
			snaptest.Must(t, os.WriteFile(filepath.Join(dir, "d/f"), []byte("22"), 0o644))
		},
		"rewritten": func(t *testing.T, dir string) {
			st, err := os.Stat(filepath.Join(dir, "d/f"))
			snaptest.Must(t, err)
			snaptest.Must(t, os.WriteFile(filepath.Join(dir, "d/f"), []byte("3"), 0o644))
			snaptest.Must(t, os.Chtimes(filepath.Join(dir, "d/f"), time.Time{}, st.ModTime()))
		},
		"replaced": func(t *testing.T, dir string) {
			snaptest.Must(t, os.WriteFile(filepath.Join(dir, "new"), []byte("2"), 0o644))
			snaptest.Must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "d/f")))
		},
		"a link now": func(t *testing.T, dir string) {
			snaptest.Must(t, os.Remove(filepath.Join(dir, "d/f")))
			snaptest.Must(t, os.Symlink("x", filepath.Join(dir, "d/f")))
		},
		"a folder now": func(t *testing.T, dir string) {
			snaptest.Must(t, os.Remove(filepath.Join(dir, "d/f")))
			snaptest.Must(t, os.Mkdir(filepath.Join(dir, "d/f"), 0o755))
		},
		"its folder a link now": func(t *testing.T, dir string) {
			snaptest.Must(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "elsewhere")))
			snaptest.Must(t, os.Symlink("elsewhere", filepath.Join(dir, "d")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := snaptest.Tree(t, map[string]string{"a": "1", "d/f": "2"})
			s := whole(t, dir)
			time.Sleep(2 * copyTick) // so that a change shows in the times
			change(t, dir)
			before := whole(t, dir)
			err := Erase(t.Context(), dir, []snapshot.Entry{*s.Find("d/f")})
			var moved *MovedError
			if !errors.As(err, &moved) || moved.Path != "d/f" || !errors.Is(err, superqode.ErrConflict) || !slices.Equal(moved.ErrorPaths(), []string{"d/f"}) {
				t.Fatalf("got %v", err)
			}
			if after := whole(t, dir); !slices.Equal(paths(before), paths(after)) {
				t.Errorf("%q became %q", paths(before), paths(after))
			}
		})
	}
}

// A second name of a file may come or go without the file being another.
func TestEraseOfHardLinks(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"a": "1"})
	snaptest.Must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	snaptest.Must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
	snaptest.Must(t, Erase(t.Context(), dir, whole(t, dir).Entries))
	if left := whole(t, dir); len(left.Entries) > 0 {
		t.Errorf("left: %q", paths(left))
	}
}

func TestEraseStopsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"a": "1"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	s := whole(t, dir)
	for what, err := range map[string]error{"erase": Erase(ctx, dir, s.Entries), "adjust": Adjust(ctx, dir, s.Entries)} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if whole(t, dir).Find("a") == nil {
		t.Error("it went on")
	}
	for what, err := range map[string]error{"erase": Erase(t.Context(), dir+"/none", s.Entries), "adjust": Adjust(t.Context(), dir+"/none", s.Entries), "sync": Sync(dir + "/none")} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s where nothing is: %v", what, err)
		}
	}
	snaptest.Must(t, Sync(dir))
}

// Adjust gives bits and times back, and touches nothing that is of another kind
// by now, or behind a link.
func TestAdjust(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"a": "1", "d/f": "2", "link": "-> a", "turned": "3", "gone": "4", "far/x": "5"})
	snaptest.Must(t, os.Chmod(filepath.Join(dir, "d"), 0o2755))
	snaptest.Must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o640))
	for _, p := range []string{"a", "d/f", "link", "pipe", "d", "turned", "far/x"} {
		ts := unix.NsecToTimespec(1_234_567_890_123_456_789)
		snaptest.Must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, p), []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
	}
	was := whole(t, dir)
	now := time.Now()
	for _, p := range []string{"a", "d/f", "d", "pipe"} {
		snaptest.Must(t, os.Chmod(filepath.Join(dir, p), 0o700))
		snaptest.Must(t, os.Chtimes(filepath.Join(dir, p), now, now))
	}
	snaptest.Must(t, os.Remove(filepath.Join(dir, "link")))
	snaptest.Must(t, os.Symlink("a", filepath.Join(dir, "link")))
	snaptest.Must(t, os.Remove(filepath.Join(dir, "turned")))
	snaptest.Must(t, os.Mkdir(filepath.Join(dir, "turned"), 0o751))
	snaptest.Must(t, os.Remove(filepath.Join(dir, "gone")))
	outside := snaptest.Tree(t, map[string]string{"x": "outside"})
	snaptest.Must(t, os.RemoveAll(filepath.Join(dir, "far")))
	snaptest.Must(t, os.Symlink(outside, filepath.Join(dir, "far")))
	snaptest.Must(t, Adjust(t.Context(), dir, was.Entries))
	is := whole(t, dir)
	for _, p := range []superqode.RelPath{"a", "d", "d/f", "link", "pipe"} {
		a, b := was.Find(p), is.Find(p)
		if a.Perm != b.Perm || a.Stat.Mtime != b.Stat.Mtime {
			t.Errorf("%s: %o %d, was %o %d", p, b.Perm, b.Stat.Mtime, a.Perm, a.Stat.Mtime)
		}
	}
	if is.Find("turned").Perm != 0o751 {
		t.Error("a folder got the bits of a file")
	}
	if e := whole(t, outside).Find("x"); e.Stat.Mtime == was.Find("far/x").Stat.Mtime {
		t.Error("a link was followed")
	}
}

// Folders that their owner closed can be worked in, and are closed again.
func TestEraseAndAdjustInClosedFolders(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	dir := snaptest.Tree(t, map[string]string{"d/f": "1", "d/g": "2", "d/e/h": "3"})
	s := whole(t, dir)
	for _, p := range []string{"d/e", "d"} {
		snaptest.Must(t, os.Chmod(filepath.Join(dir, p), 0o555))
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "d"), 0o755) })
	snaptest.Must(t, Erase(t.Context(), dir, []snapshot.Entry{*s.Find("d/e/h"), *s.Find("d/f")}))
	is := whole(t, dir)
	if got := paths(is); !slices.Equal(got, []superqode.RelPath{"d", "d/e", "d/g"}) || is.Find("d").Perm != 0o555 || is.Find("d/e").Perm != 0o555 {
		t.Errorf("%q %o", got, is.Find("d").Perm)
	}
	snaptest.Must(t, Adjust(t.Context(), dir, s.Entries))
	if is := whole(t, dir); is.Find("d").Perm != 0o755 || is.Find("d/e").Perm != 0o755 {
		t.Error("the bits did not come back")
	}
}

// With Now a path in another state than it says is not replaced.
func TestMaterializeReplacesOnlyWhatItSaw(t *testing.T) {
	t.Parallel()
	from := snaptest.Tree(t, map[string]string{"a": "base", "d/f": "base", "link": "-> base"})
	base := whole(t, from)
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		moved  superqode.RelPath
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"written": {func(t *testing.T, dir string) {
			snaptest.Must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("meanwhile"), 0o644))
		}, "a"},
		"made": {func(t *testing.T, dir string) { snaptest.Must(t, os.Symlink("x", filepath.Join(dir, "link"))) }, "link"},
		"gone": {func(t *testing.T, dir string) { snaptest.Must(t, os.Remove(filepath.Join(dir, "a"))) }, "a"},
		"no folder": {func(t *testing.T, dir string) {
			snaptest.Must(t, os.RemoveAll(filepath.Join(dir, "d")))
			snaptest.Must(t, os.Symlink(".", filepath.Join(dir, "d")))
		}, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := snaptest.Tree(t, map[string]string{"a": "other", "d/f": "other"})
			now := whole(t, dir)
			c.change(t, dir)
			_, err := Materialize(t.Context(), base, nil, dir, MaterializeOptions{Replace: true, Now: now, Aside: from})
			var moved *MovedError
			if c.moved == "" {
				if err != nil {
					t.Fatal(err)
				}
				want, _ := base.Digest()
				if got, _ := whole(t, dir).Digest(); got != want {
					t.Error("not what was asked for")
				}
				return
			}
			if !errors.As(err, &moved) || moved.Path != c.moved {
				t.Fatalf("%v, want %s moved", err, c.moved)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".superqode-*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// Aside is checked against the ids, comes before the store, and can be partial.
func TestMaterializeFromAside(t *testing.T) {
	t.Parallel()
	from := snaptest.Tree(t, map[string]string{"good": "1", "bad": "2", "gone": "3", "a link": "4", "unknown": "5"})
	base := whole(t, from)
	base.Find("unknown").ID = snapshot.ID{} // what was never read is taken as it is
	aside := snaptest.Tree(t, map[string]string{"good": "1", "bad": "x", "a link": "-> good", "unknown": "5"})
	dir := t.TempDir()
	problems, err := Materialize(t.Context(), base, nil, dir, MaterializeOptions{Aside: aside, Partial: true})
	snaptest.Must(t, err)
	var names []superqode.RelPath
	for _, p := range problems {
		names = append(names, p.Path)
	}
	if !slices.Equal(names, []superqode.RelPath{"a link", "bad", "gone"}) {
		t.Errorf("problems %v", problems)
	}
	if got := paths(whole(t, dir)); !slices.Equal(got, []superqode.RelPath{"good", "unknown"}) {
		t.Errorf("made: %q", got)
	}
	if _, err := Materialize(t.Context(), base, nil, t.TempDir(), MaterializeOptions{Aside: aside}); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("without Partial: %v", err)
	}
	if _, err := Materialize(t.Context(), base, nil, t.TempDir(), MaterializeOptions{Aside: filepath.Join(aside, "none"), Partial: true}); err != nil {
		t.Errorf("without aside: %v", err)
	}
}

// Special files come back as what they were, where they can be made.
func TestMaterializeSpecialFiles(t *testing.T) {
	dir := snaptest.Tree(t, map[string]string{"f": "1"})
	snaptest.Must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o604))
	snaptest.Must(t, os.Chmod(filepath.Join(dir, "pipe"), 0o604))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	snaptest.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	t.Chdir(dir) // a socket's path is short
	snaptest.Must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "sock"}))
	if os.Getuid() == 0 {
		if err := unix.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Log("no devices here:", err)
		}
	}
	was := whole(t, dir)
	to := t.TempDir()
	problems, err := Materialize(t.Context(), was, nil, to, MaterializeOptions{Aside: dir, Special: true})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	want, err := was.Digest()
	snaptest.Must(t, err)
	is := whole(t, to)
	if got, err := is.Digest(); err != nil || got != want || is.Find("pipe").Stat.Mtime != was.Find("pipe").Stat.Mtime || is.Find("sock").Link != "socket" {
		t.Errorf("%v %+v", err, is.Entries)
	}
	problems, err = Materialize(t.Context(), was, nil, t.TempDir(), MaterializeOptions{Aside: dir})
	if err != nil || len(problems) == 0 || !errors.Is(problems[0].Err, ErrSpecial) {
		t.Errorf("not asked for: %v %v", err, problems)
	}
	odd := &snapshot.Snapshot{Format: snapshot.SHA1, Entries: []snapshot.Entry{{Path: "x", Kind: snapshot.Other, Link: "door"}}}
	if problems, err := Materialize(t.Context(), odd, nil, t.TempDir(), MaterializeOptions{Special: true}); err != nil || len(problems) != 1 || !errors.Is(problems[0].Err, ErrSpecial) {
		t.Errorf("an unknown kind: %v %v", err, problems)
	}
}
