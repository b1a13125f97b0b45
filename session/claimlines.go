package session

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// maxClaimFile is the size up to which a file is compared line by line. A bigger
// one is claimed and edited as a whole.
const maxClaimFile = 16 << 20

// baseLines knows what the files of a session's workspace were at its base. It
// serves conversations that run beside the session's own work, so it shares no
// state with the Session.
type baseLines struct {
	root, dir string
	open      func(context.Context) (*snapshot.Store, error)
	aside     string // in place: copies of the base's files

	once sync.Once
	base *snapshot.Snapshot
	err  error
}

func (s *Session) baseLines() *baseLines {
	own := &site.Site{Host: s.Host, Project: s.Project, Source: s.Source, Folder: s.Folder, Rec: s.Rec, Distrusted: s.Distrusted}
	b := &baseLines{root: string(s.Rec.Workspace), dir: s.Folder, base: s.Base, open: func(ctx context.Context) (*snapshot.Store, error) {
		err := own.OpenStore(ctx)
		return own.Store, err
	}}
	if s.Rec.Mode.InPlace() {
		b.aside = filepath.Join(s.AsideDir(), "tree")
	}
	return b
}

// translate turns lines of a file as it is now into lines of the base. Where the
// base has no such file, or its contents are not to be had, every edit is one of
// the whole file.
func (b *baseLines) translate(ctx context.Context, path string, lines []coordinator.Lines) ([]coordinator.Lines, error) {
	whole := []coordinator.Lines{{}}
	if len(lines) == 0 {
		return nil, nil
	}
	now, err := readWorkspaceFile(b.root, path)
	if err != nil || len(now) > maxClaimFile {
		return whole, nil // not there, a link that leads out: whatever it is, all of it
	}
	base, err := b.contents(ctx, path)
	if err != nil || base == nil {
		return whole, err
	}
	m := coordinator.NewLineMap(base, now)
	var out []coordinator.Lines
	for _, l := range lines {
		out = append(out, m.ToBase(l))
	}
	return out, nil
}

// contents returns a file of the base, or nil where it was none.
func (b *baseLines) contents(ctx context.Context, path string) ([]byte, error) {
	b.once.Do(func() {
		if b.base == nil {
			b.base, b.err = snapshot.Load(filepath.Join(b.dir, "base.snap"))
		}
	})
	if b.err != nil {
		return nil, b.err
	}
	e := b.base.Find(path)
	if e == nil || e.Kind != snapshot.File || e.Size > maxClaimFile {
		return nil, nil
	}
	if b.aside != "" {
		if data, err := atomicfile.Read(filepath.Join(b.aside, path)); err == nil {
			return data, nil
		}
	}
	if st, err := snapshot.StatEntry(filepath.Join(b.root, path)); err == nil && st.Stat == e.Stat && st.Size == e.Size {
		return readWorkspaceFile(b.root, path) // as it was
	}
	store, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if e.ID.IsZero() {
		return nil, nil
	}
	if err := store.ReadBlob(ctx, e.ID, &buf); err != nil {
		return nil, nil // not kept: a file too large, say
	}
	return buf.Bytes(), nil
}

// readWorkspaceFile reads a regular file below root; links do not lead out of it.
func readWorkspaceFile(root, path string) (_ []byte, err error) {
	r, err := atomicfile.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if st, err := r.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() || st.Size() > maxClaimFile {
		return nil, atomicfile.ErrNotRegular
	}
	return r.ReadFile(path)
}
