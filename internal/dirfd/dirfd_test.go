package dirfd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenPathDeep opens folders by paths that are short, deep, and longer than one call
// takes, and none through a link.
func TestOpenPathDeep(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	root, err := OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	open := func(path string, flags int) error {
		fd, err := OpenPath(root, path, flags)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	for _, n := range []int{1, 40, 2500} {
		path := strings.Repeat("dir/", n-1) + "dir"
		for at, up := 0, root; at < n; at++ {
			if err := unix.Mkdirat(up, "dir", 0o700); err != nil && err != unix.EEXIST {
				t.Fatal(err)
			}
			next, err := Open(up, "dir", PassFlags, 0)
			if err != nil {
				t.Fatal(err)
			}
			if up != root {
				_ = unix.Close(up)
			}
			if up = next; at == n-1 {
				var want, got unix.Stat_t
				fd, err := OpenPath(root, path, PassFlags)
				if err != nil || unix.Fstat(up, &want) != nil || unix.Fstat(fd, &got) != nil || got.Ino != want.Ino {
					t.Errorf("%d deep: %v, inode %d, want %d", n, err, got.Ino, want.Ino)
				}
				_, _ = unix.Close(up), unix.Close(fd)
			}
		}
		if err := open(path+"/none", PassFlags); err != unix.ENOENT {
			t.Errorf("%d deep: %v for what is not there", n, err)
		}
		if err := open(path, DirFlags); err != nil {
			t.Errorf("%d deep: %v", n, err)
		}
	}
	if err := os.Symlink("dir", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link", "link/dir", "link/" + strings.Repeat("dir/", 2000) + "dir"} {
		if err := open(path, PassFlags); err == nil {
			t.Errorf("%.20s was opened", path)
		}
	}
}
