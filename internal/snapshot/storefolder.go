package snapshot

import (
	"strings"

	"golang.org/x/sys/unix"
)

// folderCursor opens folders below a root one name at a time and never through a
// link, not even through one that stays inside (os.Root follows those, into .git
// for example). The last folder stays open, for sorted paths mostly share it.
type folderCursor struct {
	root   int // handle, closed by its owner
	at     string
	folder int // handle of at, -1 while none is open
}

// enter returns a handle of the folder dir, "" for the root; it is valid until
// the next call.
func (c *folderCursor) enter(dir string) (int, error) {
	if c.folder >= 0 && c.at == dir {
		return c.folder, nil
	}
	if err := c.leave(); err != nil {
		return -1, err
	}
	fd, err := openat(c.root, ".", srcDirFlags, 0)
	for rest := dir; err == nil && rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		up := fd
		fd, err = openat(up, name, srcDirFlags, 0)
		_ = unix.Close(up) // a folder handle has nothing to flush
	}
	if err == nil {
		c.at, c.folder = dir, fd
	}
	return fd, err
}

func (c *folderCursor) leave() error {
	if c.folder < 0 {
		return nil
	}
	fd := c.folder
	c.folder = -1
	return unix.Close(fd)
}
