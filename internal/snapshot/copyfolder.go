package snapshot

import (
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyBuffer is the size of each worker's buffer and the limit up to which a
// file is copied by one read and one write.
const copyBuffer = 128 << 10

// copyWorker is one goroutine of a copier.
type copyWorker struct {
	*copier
	buf  []byte
	hash hash.Hash
}

// run takes tasks until none is left. After a failure the tasks are still taken,
// to close the handles, but nothing more is done.
func (w *copyWorker) run() {
	w.buf = make([]byte, copyBuffer)
	for {
		w.mu.Lock()
		for len(w.stack) == 0 && w.open > 0 {
			w.cond.Wait()
		}
		if len(w.stack) == 0 {
			w.mu.Unlock()
			return
		}
		t := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.mu.Unlock()
		if t.from < 0 {
			w.enter(t.dir)
		} else {
			w.files(t)
		}
		w.mu.Lock()
		w.open--
		done := w.open == 0
		w.mu.Unlock()
		if done {
			w.cond.Broadcast()
		}
	}
}

// files copies a range of one folder's items.
func (w *copyWorker) files(t copyTask) {
	d := &w.dirs[t.dir]
	for _, i := range w.items[t.from:t.to] {
		if w.stop.Load() {
			break
		}
		e := &w.in[i]
		_, name := splitPath(e.Path)
		var err error
		switch e.Kind {
		case File:
			err = w.file(d, name, e, &w.out[i])
		case Link:
			err = w.link(d, name, e, &w.out[i])
		default:
			err = sourceError{ErrSpecial}
		}
		w.settle(e.Path, err)
	}
	w.meter.add(int(t.to - t.from))
	w.release(t.dir)
}

// sourceError marks an error of the source: a problem of one path and not the
// end of the copy.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func (c *copier) settle(path string, err error) {
	if err == nil {
		return
	}
	if s, ok := errors.AsType[sourceError](err); ok && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		c.problem(path, s.error)
		return
	}
	c.fail(fmt.Errorf("%q: %w", path, err))
}

// enter makes folder d in the destination and opens it on both sides. A source
// folder that is gone leaves all below it out.
func (w *copyWorker) enter(d int32) {
	dir := &w.dirs[d]
	defer w.release(dir.parent)
	if w.stop.Load() {
		return
	}
	e := &w.in[dir.entry]
	_, name := splitPath(e.Path)
	w.settle(e.Path, w.openDir(d, dir, name))
}

func (w *copyWorker) openDir(d int32, dir *copyDir, name string) (err error) {
	parent := &w.dirs[dir.parent]
	var st unix.Stat_t
	dir.src = -1
	if dir.nested {
		if dir.src, err = openat(parent.src, name, srcDirFlags, 0); err != nil {
			return sourceError{fmt.Errorf("open: %w", err)}
		}
		err = unix.Fstat(dir.src, &st)
	} else {
		// An empty folder need not be opened, and may be one that can not be.
		err = unix.Fstatat(parent.src, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = syscall.ENOTDIR
	}
	if err != nil {
		w.closeSource(dir)
		return sourceError{fmt.Errorf("stat: %w", err)}
	}
	dir.perm, dir.mtime = uint32(st.Mode)&0o7777, st.Mtim
	if err = unix.Mkdirat(parent.dst, name, dir.perm&0o777|0o700); err == nil || err == unix.EEXIST && w.existing {
		dir.dst, err = openat(parent.dst, name, dstDirFlags, 0)
	}
	if err != nil {
		w.closeSource(dir)
		return targetError("make folder", err)
	}
	w.entered(d)
	return nil
}

func (w *copyWorker) closeSource(dir *copyDir) {
	if dir.src >= 0 {
		_ = unix.Close(dir.src) // opened for reading only
	}
}

// release gives up one use of a folder's handles. The last one gives the folder
// its mode and mtime: nothing is made in it any more.
func (c *copier) release(d int32) {
	dir := &c.dirs[d]
	if dir.pending.Add(-1) > 0 {
		return
	}
	if dir.entry >= 0 && !c.stop.Load() {
		e := &c.in[dir.entry]
		if err := c.finishDir(dir, e, &c.out[dir.entry]); err != nil {
			c.settle(e.Path, targetError("set mode and time", err))
		}
	}
	if dir.src >= 0 {
		_ = unix.Close(dir.src) // opened for reading only
	}
	_ = unix.Close(dir.dst) // a folder handle has nothing to flush
}

func (c *copier) finishDir(dir *copyDir, e, out *Entry) error {
	var st unix.Stat_t
	if err := futimens(dir.dst, dir.mtime); err != nil {
		return err
	}
	if err := unix.Fstat(dir.dst, &st); err != nil {
		return err
	}
	if uint32(st.Mode)&0o7777 != dir.perm {
		if err := unix.Fchmod(dir.dst, dir.perm); err != nil {
			return err
		}
		if err := unix.Fstat(dir.dst, &st); err != nil {
			return err
		}
	}
	*out = Entry{Path: e.Path, Kind: Dir, Perm: uint32(st.Mode) & 0o7777, Stat: unixStat(&st)}
	return nil
}

// targetError wraps an error of the destination. A name that its file system can
// not hold is a problem of that path alone.
func targetError(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	switch {
	case errors.Is(err, syscall.EILSEQ), errors.Is(err, syscall.ENAMETOOLONG):
		return sourceError{err}
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w (the destination is not empty)", err)
	}
	return err
}

// openat opens name below an open folder; EINTR, which slow file systems may
// give, is tried again.
func openat(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, perm)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}
