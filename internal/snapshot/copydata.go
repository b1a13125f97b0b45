package snapshot

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// errKeptChanging is ErrChangedWhileRead on its way up: the file was written and
// is to be finished.
var errKeptChanging = errors.New("kept changing")

// copyStep is how much of a big file is copied between two looks at whether to
// stop.
const copyStep = 8 << 20

// contents fills fd with the contents of in by the cheapest way that the file
// systems have, and returns their id. st is in's state before, and after.
func (w *copyWorker) contents(in, fd int, e *Entry, st *unix.Stat_t) (ID, error) {
	for try := 1; ; try++ {
		before := *st
		if err := w.transfer(in, fd, &before); err != nil {
			return ID{}, err
		}
		if err := unix.Fstat(in, st); err != nil {
			return ID{}, sourceError{err}
		}
		same := before.Size == st.Size && before.Mtim == st.Mtim && before.Ctim == st.Ctim
		if !same && try < copyTries {
			if err := unix.Ftruncate(fd, 0); err != nil {
				return ID{}, err
			}
			continue
		}
		id := w.trustedID(e, st)
		var err error
		if !same || id.IsZero() {
			id, err = w.hashFile(fd)
		}
		if err == nil && !same {
			err = errKeptChanging
		}
		return id, err
	}
}

// transfer copies st.Size bytes from in to fd: by sharing blocks, else data
// range by data range where there are holes, else all in one range.
func (w *copyWorker) transfer(in, fd int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if !w.noClone.Load() {
		switch err := cloneFile(in, fd); {
		case err == nil:
			return nil
		case noCloneHere(err):
			w.noClone.Store(true)
		}
	}
	if !isSparse(st) {
		return w.copyRange(in, fd, 0, st.Size)
	}
	if err := unix.Ftruncate(fd, st.Size); err != nil {
		return err
	}
	for off := int64(0); off < st.Size; {
		data, hole, err := nextData(in, off, st.Size)
		if err != nil {
			return w.copyRange(in, fd, off, st.Size)
		}
		if err := w.copyRange(in, fd, data, hole); err != nil {
			return err
		}
		off = hole
	}
	return nil
}

// copyRange copies the bytes from off up to end, or up to where the file ends.
func (w *copyWorker) copyRange(in, fd int, off, end int64) error {
	inKernel := true
	for off < end {
		if w.stop.Load() {
			return context.Canceled // fail has the real reason already
		}
		var n int
		var err error
		if inKernel {
			n, err = copyFileRange(in, fd, off, int(min(end-off, copyStep)))
			switch {
			case err == nil && n > 0:
				off += int64(n)
				continue
			case err == syscall.EINTR:
				continue
			case err == syscall.ENOSPC || err == syscall.EDQUOT:
				return err
			}
			inKernel = false // not between these file systems, or the end: reading tells which
		}
		if n, err = readUpTo(in, w.buf[:min(int64(len(w.buf)), end-off)], 1, off); err != nil {
			return sourceError{err}
		}
		if n == 0 {
			return nil
		}
		if err = writeFull(fd, w.buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// hashFile returns the id of what was written to fd.
func (w *copyWorker) hashFile(fd int) (ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, err
	}
	w.startHash(st.Size)
	for off := int64(0); off < st.Size; {
		n, err := readUpTo(fd, w.buf, 1, off)
		if err == nil && n == 0 {
			err = ErrChangedWhileRead // someone shortens our copy
		}
		if err != nil {
			return ID{}, err
		}
		if w.stop.Load() {
			return ID{}, context.Canceled // fail has the real reason already
		}
		w.hash.Write(w.buf[:n])
		off += int64(n)
	}
	var sum [32]byte
	return IDFrom(w.hash.Sum(sum[:0])), nil
}

// isSparse reports whether a file has holes worth keeping. Small files may have
// no block at all because their file system keeps them in the inode.
func isSparse(st *unix.Stat_t) bool {
	return st.Size > 4096 && st.Blocks*512 < st.Size
}
