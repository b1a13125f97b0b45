package snapshot

import (
	"bufio"
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// fetch writes an entry's contents to an empty file, from aside or from the
// store. With Partial a failure that is not the file's is a sourceError.
func (m *materializer) fetch(ctx context.Context, e *Entry, f *os.File) error {
	to := &watchedFile{f: f}
	err := m.fetchTo(ctx, e, to)
	if err == nil || to.err != nil || !m.opt.Partial || ctx.Err() != nil {
		return err
	}
	if m.contents != nil {
		_ = m.contents.close() // it may have died of the damage; the next file gets another
		m.contents = nil
	}
	return sourceError{err}
}

func (m *materializer) fetchTo(ctx context.Context, e *Entry, to *watchedFile) (err error) {
	if found, err := m.fetchAside(ctx, e, to); found || err != nil {
		return err
	}
	if m.store == nil {
		return superqode.Errorf(superqode.ErrNotFound, "nothing was kept of %q", e.Path)
	}
	if m.contents == nil {
		if m.contents, err = m.store.openReader(ctx); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(to, 64<<10)
	return errors.Join(m.contents.copy(e.ID, w), w.Flush())
}

// watchedFile remembers that a write to it failed.
type watchedFile struct {
	f   *os.File
	err error
}

func (w *watchedFile) Write(b []byte) (n int, err error) {
	if n, err = w.f.Write(b); err != nil {
		w.err = err
	}
	return n, err
}

// WriteAt is os.File.WriteAt.
func (w *watchedFile) WriteAt(b []byte, off int64) (n int, err error) {
	if n, err = w.f.WriteAt(b, off); err != nil {
		w.err = err
	}
	return n, err
}

func (w *watchedFile) truncate(size int64) error {
	err := w.f.Truncate(size)
	if err != nil {
		w.err = err
	}
	return err
}

func (m *materializer) fetchAside(ctx context.Context, e *Entry, out *watchedFile) (found bool, err error) {
	if m.aside == nil {
		return false, nil
	}
	dir, name := splitPath(e.Path)
	fd := -1
	at, err := m.aside.enter(dir)
	if err == nil {
		fd, err = openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil { // not there, or not to be read: the store may have it
		return false, nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	h := m.format.NewBlobHash(e.Size)
	n, err := copySparse(ctx, f, out, h)
	if err == nil && (n != e.Size || !e.ID.IsZero() && IDFrom(h.Sum(nil)) != e.ID) {
		err = superqode.Errorf(superqode.ErrVerification, "what was kept of %q is damaged", e.Path)
	}
	return true, err
}
