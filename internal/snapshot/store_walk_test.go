package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testWalk records dir the slow and obvious way. With ids it reads every file.
func testWalk(tb testing.TB, dir string, ids bool) *Snapshot {
	tb.Helper()
	s := &Snapshot{Root: dir, Format: SHA1, Taken: time.Now()}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." {
			return nil
		}
		if filepath.Base(rel) == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		e := Entry{Path: rel, Perm: uint32(st.Mode) & 0o7777, Stat: unixStat(&st)}
		switch uint32(st.Mode) & unix.S_IFMT {
		case unix.S_IFREG:
			e.Kind, e.Size = File, st.Size
			if ids {
				b, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				e.ID = SHA1.HashBlob(b)
			}
		case unix.S_IFLNK:
			e.Kind = Link
			if e.Link, err = os.Readlink(p); err != nil {
				return err
			}
			e.Size, e.ID = int64(len(e.Link)), SHA1.HashBlob([]byte(e.Link))
		case unix.S_IFDIR:
			e.Kind = Dir
		default:
			e.Kind = Other
		}
		s.Entries = append(s.Entries, e)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	sort.Slice(s.Entries, func(i, j int) bool { return s.Entries[i].Path < s.Entries[j].Path })
	return s
}

// sameTree fails unless both snapshots hold the same paths, kinds, modes,
// contents and, with times, mtimes.
func sameTree(tb testing.TB, want, got *Snapshot, times bool) {
	tb.Helper()
	if len(want.Entries) != len(got.Entries) {
		tb.Errorf("%d entries, want %d", len(got.Entries), len(want.Entries))
	}
	for i := range min(len(want.Entries), len(got.Entries)) {
		w, g := want.Entries[i], got.Entries[i]
		if !times {
			w.Stat.Mtime, g.Stat.Mtime = 0, 0
		}
		w.Stat = Stat{Mtime: w.Stat.Mtime}
		g.Stat = Stat{Mtime: g.Stat.Mtime}
		if w != g {
			tb.Fatalf("entry %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

func mustWrite(tb testing.TB, root, path, data string, perm os.FileMode) {
	tb.Helper()
	p := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := unix.Chmod(p, uint32(perm)); err != nil {
		tb.Fatal(err)
	}
}
