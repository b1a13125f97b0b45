package snapshot

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MaterializeOptions says how Materialize treats what is there.
type MaterializeOptions struct {
	// Replace lets files and links take the place of files and links, each by one
	// rename, and folders be used that exist. What a file replaces must have been
	// saved before. Without it every path must be free.
	Replace bool
}

// Materialize writes the entries of snap, with contents from the store, into the
// directory dst, with their exact permission bits and mtimes. Folders that are
// only implied are made too. A path that dst holds and snap does not is left
// alone.
//
// All is done by names within open folders, found from dst one name at a time:
// no link below dst is followed, not even one that stays inside (os.Root would
// follow that, into .git for example). Contents are checked against their ids
// while they are written. Special files are not made and are named in the
// problems with ErrSpecial.
func Materialize(ctx context.Context, snap *Snapshot, st *Store, dst string, opt MaterializeOptions) (_ []Problem, err error) {
	entries, err := withParents(snap.Entries)
	if err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	root, err := unix.Open(dst, dstDirFlags&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("materialize: open %s: %w", dst, err)
	}
	m := &materializer{folderCursor: folderCursor{root: root, folder: -1}, opt: opt}
	defer func() { err = errors.Join(err, m.leave(), unix.Close(root)) }()
	if m.contents, err = st.openReader(ctx); err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	defer func() { err = errors.Join(err, m.contents.close()) }()
	for i := range entries {
		e := &entries[i]
		if ctx.Err() != nil {
			return m.problems, context.Cause(ctx)
		}
		if err := m.entry(e); err != nil {
			return m.problems, fmt.Errorf("materialize %q: %w", e.Path, err)
		}
	}
	for i := len(entries) - 1; i >= 0; i-- { // what is in a folder sorts after it
		if e := &entries[i]; e.Kind == Dir {
			if err := m.finishDir(e); err != nil {
				return m.problems, fmt.Errorf("materialize %q: %w", e.Path, err)
			}
		}
	}
	return m.problems, nil
}

type materializer struct {
	folderCursor
	opt      MaterializeOptions
	contents *catFile
	problems []Problem
}

func (m *materializer) entry(e *Entry) error {
	dir, name := splitPath(e.Path)
	at, err := m.enter(dir)
	if err != nil {
		return err
	}
	switch e.Kind {
	case Dir:
		return m.dir(at, name)
	case File:
		return m.put(at, name, func(name string) error { return m.file(at, name, e) })
	case Link:
		return m.put(at, name, func(name string) error {
			if err := unix.Symlinkat(e.Link, at, name); err != nil {
				return err
			}
			return setTimeAt(at, name, e.Stat.Mtime)
		})
	}
	m.problems = append(m.problems, Problem{Path: e.Path, Err: ErrSpecial})
	return nil
}

// dir makes a folder that can be written to for now.
func (m *materializer) dir(at int, name string) error {
	err := unix.Mkdirat(at, name, 0o700)
	if err != unix.EEXIST || !m.opt.Replace {
		return err
	}
	fd, err := openat(at, name, dstDirFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, 0o700), unix.Close(fd))
}

// put makes something by its name or, where it may replace, by another name that
// is then renamed: the old is there until the new is whole.
func (m *materializer) put(at int, name string, fill func(name string) error) error {
	if !m.opt.Replace {
		return fill(name)
	}
	tmp := ".superqode-" + rand.Text()
	err := fill(tmp)
	if err == nil {
		err = unix.Renameat(at, tmp, at, name)
	}
	if err != nil {
		if uerr := unix.Unlinkat(at, tmp, 0); uerr != unix.ENOENT {
			err = errors.Join(err, uerr)
		}
	}
	return err
}

func (m *materializer) file(at int, name string, e *Entry) error {
	fd, err := openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	w := bufio.NewWriterSize(f, 64<<10)
	err = m.contents.copy(e.ID, w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = errors.Join(unix.Fchmod(fd, e.Perm), futimens(fd, unix.NsecToTimespec(e.Stat.Mtime)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(at, name, 0))
	}
	return nil
}

// finishDir gives a folder its mode and time, when nothing is made in it any
// more.
func (m *materializer) finishDir(e *Entry) error {
	dir, name := splitPath(e.Path)
	at, err := m.enter(dir)
	if err != nil {
		return err
	}
	fd, err := openat(at, name, dstDirFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, e.Perm), futimens(fd, unix.NsecToTimespec(e.Stat.Mtime)), unix.Close(fd))
}

// setTimeAt sets the mtime of name itself, were it a link.
func setTimeAt(at int, name string, mtime int64) error {
	ts := unix.NsecToTimespec(mtime)
	return unix.UtimesNanoAt(at, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
