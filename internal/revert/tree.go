package revert

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// Method says how to compare a directory with a snapshot.
type Method string

// The methods. Stat trusts the stat data of files that nobody touched and reads
// the others; Full reads every byte of files that have the base's size.
const (
	Stat Method = "stat"
	Full Method = "full"
)

// Tree is a directory that can be restored to a snapshot.
type Tree struct {
	Dir   string             // absolute
	Base  *snapshot.Snapshot // the snapshot to restore
	Skip  snapshot.Skip      // what is not part of it; nil: nothing
	Store *store.Store       // the contents
	Aside string             // a folder with some of the files, which has precedence over the store; "" for none
}

// Scan records what the directory holds now. It reads only the contents that decide
// whether a file is the base's: content ids of files that are new, or of another
// size, stay zero.
func (t *Tree) Scan(ctx context.Context, how Method) (*snapshot.Snapshot, []snapshot.Problem, error) {
	opt := snapshot.ScanOptions{Format: t.Base.Format, Skip: t.Skip, Contents: snapshot.StatOnly}
	if how != Full {
		opt.Previous, opt.Known = t.Base, t.Base.Known()
	}
	now, problems, err := snapshot.Scan(ctx, t.Dir, opt)
	if err != nil {
		return now, problems, err
	}
	more, err := t.readDoubtful(ctx, now)
	return now, append(problems, more...), err
}

// readDoubtful fills in the ids of files that have the base's size but not its
// stat data.
func (t *Tree) readDoubtful(ctx context.Context, now *snapshot.Snapshot) ([]snapshot.Problem, error) {
	var doubtful []*snapshot.Entry
	part := now.With(nil)
	for old, e := range snapshot.Join(t.Base.Entries, now.Entries) {
		if old == nil || e == nil || old.Kind != snapshot.File || e.Kind != snapshot.File {
			continue
		}
		if e.ID.IsZero() && !old.ID.IsZero() && e.Size == old.Size {
			doubtful = append(doubtful, e)
			part.Entries = append(part.Entries, *e)
		}
	}
	problems, err := snapshot.HashMissing(ctx, part)
	for i, e := range doubtful {
		*e = part.Entries[i]
	}
	return problems, err
}

// open adds the permissions to read what somebody has made unreadable, and
// reports whether there was anything.
func (t *Tree) open(ctx context.Context, now *snapshot.Snapshot, problems []snapshot.Problem) (bool, error) {
	var wide []snapshot.Entry
	for _, p := range problems {
		e := now.Find(p.Path)
		if e == nil || !errors.Is(p.Err, os.ErrPermission) || e.Kind != snapshot.File && e.Kind != snapshot.Dir {
			continue
		}
		if old := t.Base.Find(p.Path); old != nil && old.Kind == e.Kind && old.Perm == e.Perm {
			continue // so it was
		}
		open := *e
		open.Perm |= 0o400
		if e.Kind == snapshot.Dir {
			open.Perm |= 0o700
		}
		if open.Perm != e.Perm {
			wide = append(wide, open)
		}
	}
	return len(wide) > 0, treecopy.Adjust(ctx, t.Dir, wide)
}

// maxOpenings bounds how often Scan starts again because it had to make folders
// readable first; each scan gets at least one level deeper.
const maxOpenings = 64

// look scans for a plan.
func (t *Tree) look(ctx context.Context, how Method) (*snapshot.Snapshot, []snapshot.Problem, error) {
	for try := 1; ; try++ {
		now, problems, err := t.Scan(ctx, how)
		if err != nil {
			return nil, nil, fmt.Errorf("look at %s: %w", t.Dir, err)
		}
		opened, err := t.open(ctx, now, problems)
		if err != nil {
			return nil, nil, err
		}
		if !opened || try == maxOpenings {
			return now, problems, nil
		}
	}
}
