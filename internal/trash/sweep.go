// Package trash removes what superqode made: Put renames it away in no time, Sweep
// deletes it later, however deep it is, and RemoveTree deletes at once. No link is
// followed, and permissions that are missing are added.
package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// maxOpen is how deep Sweep follows a tree before it moves the rest up to the
// trash's own level: every level costs an open handle, and a program can nest
// folders deeper than a process may have handles.
const maxOpen = 200

// Sweep deletes what is in trashDir for at most budget (0: until it is done)
// and reports whether nothing is left. It works on open folders, follows no
// link, and gives itself the permissions it lacks. The error names what it
// could not delete; it deletes the rest all the same. A missing trashDir is
// clean.
func Sweep(ctx context.Context, trashDir string, budget time.Duration) (done bool, err error) {
	s := &sweeper{ctx: ctx}
	if budget > 0 {
		s.deadline = time.Now().Add(budget)
	}
	s.top, err = unix.Open(trashDir, openDir, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "sweep", Path: trashDir, Err: err}
	}
	defer unix.Close(s.top)
	for { // what was moved up from the depth comes in the next round
		s.moved = 0
		s.empty(s.top, trashDir, 0)
		if s.moved == 0 || s.over() || s.err != nil {
			break
		}
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	return s.err == nil && !s.over(), s.err
}

// RemoveTree deletes path and everything below it as Sweep does.
func RemoveTree(ctx context.Context, path string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		_ = os.Chmod(path, 0o700) // not ours: the sweep will report it
		if _, err := Sweep(ctx, path, 0); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

type sweeper struct {
	ctx      context.Context
	deadline time.Time
	top      int // the trash itself
	count    int // deletions, to check the clock now and then
	moved    int
	late     bool
	err      error // the first few things that stay
	failures int
}

// over reports whether time is up.
func (s *sweeper) over() bool {
	if s.late {
		return true
	}
	s.late = s.ctx.Err() != nil || !s.deadline.IsZero() && time.Now().After(s.deadline)
	return s.late
}

func (s *sweeper) fail(path string, err error) {
	if s.failures++; s.failures <= 3 {
		s.err = errors.Join(s.err, &os.PathError{Op: "sweep", Path: path, Err: err})
	}
}

// empty deletes what is in the open folder fd, some names at a time so that a
// huge folder does not fill the memory. A file system may skip names while
// others are deleted, so it repeats until a pass deletes nothing new or the
// folder is empty; what cannot be deleted does not hide what can.
func (s *sweeper) empty(fd int, path string, depth int) {
	buf := make([]byte, 1<<15)
	for {
		if _, err := unix.Seek(fd, 0, 0); err != nil {
			s.fail(path, err)
			return
		}
		seen, gone := 0, 0
		for {
			n, err := unix.ReadDirent(fd, buf)
			if err != nil {
				s.fail(path, err)
				return
			}
			if n == 0 {
				break
			}
			_, _, names := unix.ParseDirent(buf[:n], -1, nil)
			for _, name := range names {
				if s.count++; s.count%64 == 0 && s.over() || s.late {
					return
				}
				seen++
				if s.remove(fd, name, filepath.Join(path, name), depth) {
					gone++
				}
			}
		}
		if gone == 0 || seen < manyNames && gone == seen {
			return // nothing deleted, or all of a folder that was read in one go
		}
	}
}

// manyNames is the least number of names that takes more than one read: an entry
// in the buffer of 32 KiB has at most 280 bytes.
const manyNames = 1 << 15 / 280

// remove deletes one name in the open folder parent and reports whether it is
// gone from there.
func (s *sweeper) remove(parent int, name, path string, depth int) bool {
	err := unix.Unlinkat(parent, name, 0)
	if denied(err) && unix.Fchmod(parent, 0o700) == nil {
		err = unix.Unlinkat(parent, name, 0)
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true
	}
	fd, oerr := openFolder(parent, name)
	if oerr != nil { // not a folder, so the first error is the one that counts
		if !errors.Is(oerr, unix.ENOTDIR) && !errors.Is(oerr, unix.ELOOP) {
			err = oerr
		}
		s.fail(path, err)
		return false
	}
	if depth >= maxOpen {
		_ = unix.Fchmod(fd, 0o700) // a folder without permission cannot be moved
		_ = unix.Close(fd)
		return s.moveUp(parent, name, path)
	}
	s.empty(fd, path, depth+1)
	_ = unix.Close(fd) // opened for reading only
	if s.late {
		return false
	}
	err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		if !errors.Is(err, unix.ENOTEMPTY) || s.failures == 0 { // otherwise the reason has been reported
			s.fail(path, err)
		}
		return false
	}
	return true
}

func denied(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// openFolder opens a folder for reading. It adds the permission first if that
// is missing, without following a link that takes the folder's place meanwhile.
func openFolder(parent int, name string) (int, error) {
	fd, err := unix.Openat(parent, name, openDir, 0)
	if err == nil || !denied(err) {
		return fd, err
	}
	if cerr := dirfd.Chmod(parent, name, 0o700); cerr != nil {
		return -1, err
	}
	return unix.Openat(parent, name, openDir, 0)
}

// moveUp moves a folder that is too deep to the trash's own level.
func (s *sweeper) moveUp(parent int, name, path string) bool {
	for n := s.moved; ; n++ {
		to := fmt.Sprintf("deep-%d-%d", os.Getpid(), n)
		var st unix.Stat_t
		if unix.Fstatat(s.top, to, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			continue
		}
		err := unix.Renameat(parent, name, s.top, to)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
			continue
		}
		if err != nil {
			s.fail(path, err)
			return false
		}
		s.moved = n + 1
		return true
	}
}

// Put renames path to <trash>/<name>-<n>; it skips what is gone already. A
// folder that its owner may not write cannot be moved (its ".." changes), so
// Put adds the permission first.
func Put(path, trash string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(trash, 0o700); err != nil {
		return err
	}
	if st.IsDir() && st.Mode()&0o700 != 0o700 {
		if err := os.Chmod(path, st.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		to := filepath.Join(trash, fmt.Sprintf("%s-%d", filepath.Base(path), n))
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		err := os.Rename(path, to)
		if errors.Is(err, fs.ErrExist) { // someone else took the name just now
			continue
		}
		return err
	}
}
