package swap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// Dir is an open directory in which plans are carried out. It is not safe for
// concurrent use. Close it.
type Dir struct {
	root    int
	folders [2]*dirfd.Cursor // a rename needs two at a time; neighbours share the folder
	plain   bool             // in tests: the file system can neither exchange names nor rename only to a free one
}

// Open opens the directory at path.
func Open(path string) (*Dir, error) {
	fd, err := dirfd.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d := &Dir{root: fd}
	for i := range d.folders {
		d.folders[i] = dirfd.NewCursor(fd)
		d.folders[i].Flags = dirfd.DirFlags
	}
	return d, nil
}

// Close closes the directory.
func (d *Dir) Close() error {
	d.leave()
	return unix.Close(d.root)
}

// leave closes the open folders: from now on their names may mean others.
func (d *Dir) leave() {
	for _, c := range d.folders {
		_ = c.Leave() // a folder's handle has nothing to flush
	}
}

// at opens the folder of path, one name after the other and through no link,
// and returns its handle, valid until the slot is used again, and the last name
// of path.
func (d *Dir) at(slot int, path string) (fd int, name string, err error) {
	dir, name := dirfd.Split(superqode.RelPath(path))
	fd, err = d.folders[slot].Enter(dir)
	return fd, name, err
}

// state returns what is at path, nil for nothing, also if something above it is
// not a folder.
func (d *Dir) state(slot int, path string) (*State, error) {
	fd, name, err := d.at(slot, path)
	if err == nil {
		var st unix.Stat_t
		err = dirfd.Retry(func() error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
		if err == nil {
			return stateOf(&st), nil
		}
	}
	if isGone(err) {
		return nil, nil
	}
	return nil, err
}

func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// isDir reports whether the state is a folder's.
func (s *State) isDir() bool { return s != nil && s.Mode&unix.S_IFMT == unix.S_IFDIR }

// is reports whether now is the file s, unchanged, but perhaps with another
// name: a rename changes the ctime. Both may be nil.
func (s *State) is(now *State) bool {
	if s == nil || now == nil {
		return s == now
	}
	if s.isDir() {
		return now.isDir() && s.Ino == now.Ino
	}
	same := s.Mode == now.Mode
	if s.Mode&unix.S_IFMT == unix.S_IFLNK { // whose bits mean nothing
		same = now.Mode&unix.S_IFMT == unix.S_IFLNK
	}
	return same && s.Ino == now.Ino && s.Size == now.Size && s.Mtime == now.Mtime
}

// untouched is is, for a file that nobody renamed or changed the bits of
// either. The ctime of a file with several names says nothing: another name may
// have been removed.
func (s *State) untouched(now *State) bool {
	return s.is(now) && (s == nil || s.isDir() || s.Ctime == now.Ctime || s.Nlink > 1 || now.Nlink > 1)
}
