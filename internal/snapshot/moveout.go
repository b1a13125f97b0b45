package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MoveOut moves files, sorted, out of the directory dir into the folder to,
// under their own paths there, which are free. Nothing is read and nothing needs
// room where both are on one file system; else they are copied, holes as holes,
// and deleted. Each must still be as its entry says, else the error is a
// *MovedError. No link below dir is followed.
func MoveOut(ctx context.Context, dir, to string, format Format, files []Entry) (err error) {
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

func (c *treeEditor) moveOut(ctx context.Context, dir, to string, format Format, e *Entry) error {
	at, name, err := c.folderOf(e.Path)
	if err == nil {
		err = unmoved(at, name, e.Path, e)
	}
	if err != nil {
		return err
	}
	dst := filepath.Join(to, e.Path)
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
	_, problems, err := Copy(ctx, &Snapshot{Root: dir, Format: format, Entries: []Entry{*e}}, to, CopyOptions{Existing: true})
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
