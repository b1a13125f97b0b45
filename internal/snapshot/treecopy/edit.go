package treecopy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Erase deletes entries, sorted, from the directory dir, the deepest first. Those
// that are not in the state that their entries tell any more stay and are named
// by the error, a *MovedError. What is gone already is passed over, and a folder
// in which something is left stays. No link is followed.
func Erase(ctx context.Context, dir string, entries []snapshot.Entry) (err error) {
	if len(entries) == 0 {
		return context.Cause(ctx)
	}
	c, err := editTree(dir)
	if err != nil {
		return fmt.Errorf("delete in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var moved MovedError
	for i := len(entries) - 1; i >= 0; i-- {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := moved.collect(c.erase(&entries[i])); err != nil {
			return fmt.Errorf("delete %q: %w", entries[i].Path, err)
		}
	}
	return moved.err()
}

// Adjust gives entries that dir holds, sorted, their permission bits, mtimes
// and, for root, owners. What is not there, or of another kind, is passed over.
func Adjust(ctx context.Context, dir string, entries []snapshot.Entry) (err error) {
	if len(entries) == 0 {
		return context.Cause(ctx)
	}
	c, err := editTree(dir)
	if err != nil {
		return fmt.Errorf("adjust %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for i := len(entries) - 1; i >= 0; i-- { // a folder's own bits after those of what it holds
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.adjust(&entries[i]); err != nil {
			return fmt.Errorf("adjust %q: %w", entries[i].Path, err)
		}
	}
	return nil
}

// treeEditor changes what a directory holds. A folder without the permission to
// change it gets it for as long as the editor is in it.
type treeEditor struct {
	*dirfd.Cursor
	chown   bool
	widened bool
	perm    uint32 // of the open folder, when it was widened
}

func editTree(dir string) (*treeEditor, error) {
	root, err := dirfd.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &treeEditor{Cursor: dirfd.NewCursor(root), chown: os.Geteuid() == 0}, nil
}

func (c *treeEditor) close() error {
	return errors.Join(c.narrow(), c.Leave(), unix.Close(c.Root))
}

// folderOf enters the folder that path lies in.
func (c *treeEditor) folderOf(path superqode.RelPath) (at int, name string, err error) {
	dir, name := dirfd.Split(path)
	if open, fd := c.Here(); fd >= 0 && open != dir {
		if err := c.narrow(); err != nil {
			return -1, name, err
		}
	}
	at, err = c.Enter(dir)
	return at, name, err
}

// widen makes the open folder changeable. It reports whether that is new.
func (c *treeEditor) widen() bool {
	var st unix.Stat_t
	_, fd := c.Here()
	if c.widened || unix.Fstat(fd, &st) != nil || st.Mode&0o700 == 0o700 {
		return false
	}
	c.perm = uint32(st.Mode) & 0o7777
	c.widened = unix.Fchmodat(fd, ".", c.perm|0o700, 0) == nil // the handle is for passing through, Fchmod refuses it
	return c.widened
}

func (c *treeEditor) narrow() error {
	if !c.widened {
		return nil
	}
	c.widened = false
	_, fd := c.Here()
	return unix.Fchmodat(fd, ".", c.perm, 0)
}

func (c *treeEditor) erase(e *snapshot.Entry) error {
	at, name, err := c.folderOf(e.Path)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return elsewhere(err, e.Path)
	}
	err = unmoved(at, name, e.Path, e)
	if _, moved := errors.AsType[*MovedError](err); moved &&
		unix.Faccessat(at, name, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	flags := 0
	if e.Kind == snapshot.Dir {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(at, name, flags)
	if err == unix.EACCES && c.widen() {
		failpoint.Hit("snapshot.widened")
		err = unix.Unlinkat(at, name, flags)
	}
	failpoint.Hit("snapshot.erased")
	if err == unix.ENOENT || e.Kind == snapshot.Dir && (err == unix.ENOTEMPTY || err == unix.EEXIST) {
		return nil
	}
	return err
}

func (c *treeEditor) adjust(e *snapshot.Entry) error {
	at, name, err := c.folderOf(e.Path)
	var now snapshot.Entry
	if err == nil {
		now, err = snapshot.StatAt(at, name)
	}
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil
	}
	if err != nil {
		return err
	}
	if now.Kind != e.Kind {
		return nil
	}
	if c.chown && (now.Stat.UID != e.Stat.UID || now.Stat.GID != e.Stat.GID) {
		if err := unix.Fchownat(at, name, int(e.Stat.UID), int(e.Stat.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		now.Perm = ^e.Perm // a change of owner drops the set-id bits
	}
	if now.Perm != e.Perm && e.Kind != snapshot.Link {
		if err := unix.Fchmodat(at, name, e.Perm, 0); err != nil {
			return err
		}
	}
	failpoint.Hit("snapshot.adjusted")
	if now.Stat.Mtime == e.Stat.Mtime {
		return nil
	}
	return dirfd.SetTimeAt(at, name, e.Stat.Mtime)
}

// Sync waits until what was written in the file system of dir survives a power
// cut.
func Sync(dir string) error {
	fd, err := dirfd.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return errors.Join(syncFS(fd), unix.Close(fd))
}

// MoveOut moves files, sorted, out of the directory dir into the folder to,
// under their own paths there, which are free. Nothing is read and nothing needs
// room where both are on one file system; else they are copied, holes as holes,
// and deleted. Each must still be as its entry says, else the error is a
// *MovedError. No link below dir is followed.
func MoveOut(ctx context.Context, dir, to string, format snapshot.Format, files []snapshot.Entry) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c, err := editTree(dir)
	if err != nil {
		return fmt.Errorf("move out of %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for i := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.moveOut(ctx, dir, to, format, &files[i]); err != nil {
			return fmt.Errorf("move %q out of %s: %w", files[i].Path, dir, err)
		}
	}
	return nil
}

func (c *treeEditor) moveOut(ctx context.Context, dir, to string, format snapshot.Format, e *snapshot.Entry) error {
	at, name, err := c.folderOf(e.Path)
	if err == nil {
		err = unmoved(at, name, e.Path, e)
	}
	if err != nil {
		return err
	}
	dst := e.Path.In(to)
	if err := os.MkdirAll(filepath.Dir(dst), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(dst); err == nil {
		return &os.PathError{Op: "move", Path: dst, Err: os.ErrExist}
	}
	err = unix.Renameat(at, name, unix.AT_FDCWD, dst)
	if err == unix.EACCES && c.widen() {
		err = unix.Renameat(at, name, unix.AT_FDCWD, dst)
	}
	if err != unix.EXDEV {
		return err
	}
	one := &snapshot.Snapshot{Root: dir, Format: format, Entries: []snapshot.Entry{*e}}
	_, problems, err := Copy(ctx, one, to, CopyOptions{Existing: true, Unread: true})
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	if err != nil {
		return err
	}
	if err := Sync(to); err != nil {
		return err
	}
	return c.erase(e)
}

// MovedError says that a path is not in the state in which it was looked at.
// Nothing was done to it. It wraps superqode.ErrConflict.
type MovedError struct {
	Path superqode.RelPath
	More []string // other paths of which the same is true
}

// Error names the path.
func (e *MovedError) Error() string {
	if n := len(e.More); n > 0 {
		return fmt.Sprintf("%q and %d more changed since they were looked at", e.Path, n)
	}
	return fmt.Sprintf("%q changed since it was looked at", e.Path)
}

// Unwrap returns superqode.ErrConflict.
func (*MovedError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths.
func (e *MovedError) ErrorPaths() []string { return append([]string{string(e.Path)}, e.More...) }

// collect adds the path of a *MovedError to that in e and returns nil; any other
// error it returns.
func (e *MovedError) collect(err error) error {
	m, ok := errors.AsType[*MovedError](err)
	if !ok {
		return err
	}
	if e.Path == "" {
		e.Path = m.Path
	} else if e.Path != m.Path {
		e.More = append(e.More, string(m.Path))
	}
	return nil
}

// err returns e if there is anything in it.
func (e *MovedError) err() error {
	if e.Path == "" {
		return nil
	}
	return e
}

// elsewhere takes a folder on the way to path that is none any more, or a link by
// now, for a move.
func elsewhere(err error, path superqode.RelPath) error {
	if err == unix.ENOTDIR || err == unix.ELOOP || err == unix.ENOENT {
		return &MovedError{Path: path}
	}
	return err
}
