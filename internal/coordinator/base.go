package coordinator

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// MaxFile is the size, in bytes, up to which a file is compared line by line. A bigger
// one is claimed and edited as a whole.
const MaxFile = 16 << 20

// Base knows what the files of a session's workspace were at its base. It serves
// conversations that run next to the session's own work, so it shares no state with
// it.
type Base struct {
	Workspace string
	Snapshot  *snapshot.Snapshot // nil: it is read from List
	List      string             // the base's list, base.snap
	Asides    []string           // folders with copies of the base's files, the first that has one counts; none where there are none

	// Open opens the store of the base's contents.
	Open func(context.Context) (*store.Store, error)

	once sync.Once
	err  error
}

// Translate turns lines of a file as it is now into lines of the base. Where the
// base has no such file, or its contents were not kept, every edit is one of
// the whole file.
func (b *Base) Translate(ctx context.Context, path string, lines []Lines) ([]Lines, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	whole := []Lines{{}}
	if len(lines) == 0 {
		return nil, nil
	}
	now, err := readBelow(b.Workspace, path)
	if err != nil || len(now) > MaxFile {
		return whole, nil // not there, a link that leads out: whatever it is, all of it
	}
	base, err := b.contents(ctx, path)
	if err != nil || base == nil {
		return whole, err
	}
	return toBase(base, now, lines), nil
}

// contents returns a file of the base, or nil where it was none.
func (b *Base) contents(ctx context.Context, path string) ([]byte, error) {
	b.once.Do(func() {
		if b.Snapshot == nil {
			b.Snapshot, b.err = snapshot.Load(b.List)
		}
	})
	if b.err != nil {
		return nil, b.err
	}
	e := b.Snapshot.Find(superqode.RelPath(path))
	if e == nil || e.Kind != snapshot.File || e.Size > MaxFile {
		return nil, nil
	}
	for _, dir := range b.Asides {
		if data, err := atomicfile.Read(filepath.Join(dir, path)); err == nil {
			return data, nil
		}
	}
	if st, err := snapshot.StatEntry(filepath.Join(b.Workspace, path)); err == nil && st.Stat == e.Stat &&
		st.Size == e.Size {
		return readBelow(b.Workspace, path) // as it was
	}
	store, err := b.Open(ctx)
	if err != nil || e.ID.IsZero() {
		return nil, err
	}
	var buf bytes.Buffer
	if err := store.ReadBlob(ctx, e.ID, &buf); err != nil {
		return nil, nil // not kept: a file too large, say
	}
	return buf.Bytes(), nil
}

// readBelow reads a regular file below root; links do not lead out of it.
func readBelow(root, path string) (_ []byte, err error) {
	r, err := atomicfile.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if st, err := r.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() || st.Size() > MaxFile {
		return nil, atomicfile.ErrNotRegular
	}
	return r.ReadFile(path)
}
