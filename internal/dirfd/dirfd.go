// Package dirfd works on names below open folders: it opens one name at a time
// and follows no link, not even one that stays inside (os.Root follows those,
// into .git for example). So neither the length of a path matters nor a link
// that a program puts in the way meanwhile. Handles are bare file descriptors;
// errors are bare errnos.
package dirfd

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// OpenRoot opens a directory by its path, for reading; links on the way to it are
// followed.
func OpenRoot(dir string) (fd int, err error) {
	err = Retry(func() error {
		fd, err = unix.Open(dir, DirFlags&^unix.O_NOFOLLOW, 0)
		return err
	})
	return fd, err
}

// Open opens name below an open folder. O_CLOEXEC is always set.
func Open(dir int, name string, flags int, perm uint32) (fd int, err error) {
	err = Retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

// OpenPath opens the folder path below an open one, "" for that one itself,
// name by name. The flags are DirFlags or PassFlags.
func OpenPath(root int, path string, flags int) (int, error) {
	fd, err := Open(root, ".", flags, 0)
	for leap := flags == PassFlags; path != "" && err == nil; {
		up := fd
		if head, rest := cutDeep(path); leap && head != "" {
			if fd, leap = openDeep(up, head); !leap { // by name, which says what is in the way
				fd = up
				continue
			}
			path = rest
		} else {
			var name string
			name, path, _ = strings.Cut(path, "/")
			fd, err = Open(up, name, flags, 0)
		}
		_ = unix.Close(up) // a folder's handle has nothing to flush
	}
	return fd, err
}

// cutDeep cuts off as much of a deep path as one call takes, "" of another one: to
// remove a thousand folders within one another by name takes a million calls.
func cutDeep(path string) (head, rest string) {
	const most, deep = 4000, 32
	if head = path; len(path) > most {
		i := strings.LastIndexByte(path[:most], '/')
		if i < 0 {
			return "", path
		}
		head, rest = path[:i], path[i+1:]
	}
	if strings.Count(head, "/") < deep {
		return "", path
	}
	return head, rest
}

// Split cuts a path into its folder, "" for none, and its last name.
func Split[P ~string](path P) (dir P, name string) {
	if i := strings.LastIndexByte(string(path), '/'); i >= 0 {
		return path[:i], string(path[i+1:])
	}
	return "", string(path)
}

// Retry repeats a call that a signal interrupted, which slow file systems
// let happen.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Cursor opens folders below a root, by OpenPath. The last one stays open, for
// sorted paths mostly share it. It is not safe for concurrent use.
type Cursor struct {
	Root   int // the handle that it was made with, closed by its owner
	Flags  int // to open folders with: PassFlags or DirFlags
	path   superqode.RelPath
	folder int // handle of path, -1 while none is open
}

// NewCursor returns a cursor below an open folder, which stays the caller's.
func NewCursor(root int) *Cursor { return &Cursor{Root: root, Flags: PassFlags, folder: -1} }

// Enter returns a handle of the folder dir, "" for the root. It is valid until the
// next call.
func (c *Cursor) Enter(dir superqode.RelPath) (int, error) {
	if c.folder >= 0 && c.path == dir {
		return c.folder, nil
	}
	if err := c.Leave(); err != nil {
		return -1, err
	}
	fd, err := OpenPath(c.Root, string(dir), c.Flags)
	if err == nil {
		c.path, c.folder = dir, fd
	}
	return fd, err
}

// Here returns the folder that is open and its handle, -1 for none.
func (c *Cursor) Here() (dir superqode.RelPath, fd int) { return c.path, c.folder }

// Leave closes the folder that is open.
func (c *Cursor) Leave() error {
	if c.folder < 0 {
		return nil
	}
	fd := c.folder
	c.folder = -1
	return unix.Close(fd)
}

// ReadAt reads at least want bytes of what fits buf, from off, or less where the
// file ends. A buf longer than want lets a file that has grown show it.
func ReadAt(fd int, buf []byte, want int, off int64) (n int, err error) {
	for n < want {
		m, err := unix.Pread(fd, buf[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if m <= 0 || err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

// WriteAt writes all of buf at off.
func WriteAt(fd int, buf []byte, off int64) error {
	for len(buf) > 0 {
		m, err := unix.Pwrite(fd, buf, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		buf, off = buf[m:], off+int64(m)
	}
	return nil
}

// SetTimeAt sets the mtime, in nanoseconds since 1970, of name itself, were it a
// link.
func SetTimeAt(at int, name string, mtime int64) error {
	ts := unix.NsecToTimespec(mtime)
	return unix.UtimesNanoAt(at, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
