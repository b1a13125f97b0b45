package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// Erase deletes entries, sorted, from the directory dir, the deepest first. Those
// that are not in the state that their entries tell any more stay and are named
// by the error, a *MovedError. What is gone already is passed over, and a folder
// in which something is left stays. No link is followed.
func Erase(ctx context.Context, dir string, entries []Entry) (err error) {
	if len(entries) == 0 {
		return nil
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
func Adjust(ctx context.Context, dir string, entries []Entry) (err error) {
	if len(entries) == 0 {
		return nil
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
	folderCursor
	chown   bool
	widened bool
	perm    uint32 // of the open folder, when it was widened
}

func editTree(dir string) (*treeEditor, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	return &treeEditor{folderCursor: folderCursor{root: root, folder: -1}, chown: os.Geteuid() == 0}, nil
}

func (c *treeEditor) close() error {
	return errors.Join(c.narrow(), c.leave(), unix.Close(c.root))
}

// folder enters the folder that path lies in.
func (c *treeEditor) folderOf(path string) (at int, name string, err error) {
	dir, name := splitPath(path)
	if c.folder >= 0 && c.at != dir {
		if err := c.narrow(); err != nil {
			return -1, name, err
		}
	}
	at, err = c.enter(dir)
	return at, name, err
}

// widen makes the open folder changeable. It reports whether that is new.
func (c *treeEditor) widen() bool {
	var st unix.Stat_t
	if c.widened || unix.Fstat(c.folder, &st) != nil || st.Mode&0o700 == 0o700 {
		return false
	}
	c.perm = uint32(st.Mode) & 0o7777
	c.widened = unix.Fchmodat(c.folder, ".", c.perm|0o700, 0) == nil // the handle is for passing through, Fchmod refuses it
	return c.widened
}

func (c *treeEditor) narrow() error {
	if !c.widened {
		return nil
	}
	c.widened = false
	return unix.Fchmodat(c.folder, ".", c.perm, 0)
}

func (c *treeEditor) erase(e *Entry) error {
	at, name, err := c.folderOf(e.Path)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return elsewhere(err, e.Path)
	}
	err = unmoved(at, name, e.Path, e)
	if _, moved := errors.AsType[*MovedError](err); moved && unix.Faccessat(at, name, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	flags := 0
	if e.Kind == Dir {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(at, name, flags)
	if err == unix.EACCES && c.widen() {
		failpoint.Hit("snapshot.widened")
		err = unix.Unlinkat(at, name, flags)
	}
	failpoint.Hit("snapshot.erased")
	if err == unix.ENOENT || e.Kind == Dir && (err == unix.ENOTEMPTY || err == unix.EEXIST) {
		return nil
	}
	return err
}

func (c *treeEditor) adjust(e *Entry) error {
	at, name, err := c.folderOf(e.Path)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil
	}
	if err != nil {
		return err
	}
	var now Entry
	if now.fill(&st); now.Kind != e.Kind {
		return nil
	}
	if c.chown && (now.Stat.UID != e.Stat.UID || now.Stat.GID != e.Stat.GID) {
		if err := unix.Fchownat(at, name, int(e.Stat.UID), int(e.Stat.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		now.Perm = ^e.Perm // a change of owner drops the set-id bits
	}
	if now.Perm != e.Perm && e.Kind != Link {
		if err := unix.Fchmodat(at, name, e.Perm, 0); err != nil {
			return err
		}
	}
	failpoint.Hit("snapshot.adjusted")
	if now.Stat.Mtime == e.Stat.Mtime {
		return nil
	}
	return setTimeAt(at, name, e.Stat.Mtime)
}

// Sync waits until what was written in the file system of dir survives a power
// cut.
func Sync(dir string) error {
	fd, err := openRoot(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return errors.Join(syncFS(fd), unix.Close(fd))
}
