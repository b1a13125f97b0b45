package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// View is the part of the origin that an apply affects.
type View struct {
	Now      *snapshot.Snapshot         // see decider
	others   map[superqode.RelPath]bool // folders with something that Look did not read
	Problems []snapshot.Problem         // what could not be read
}

// Err is what could not be read, for callers that need it.
func (v *View) Err() error {
	var err error
	for _, p := range v.Problems {
		err = errors.Join(err, &os.PathError{Op: "read in the origin", Path: text.Printable(p.Path), Err: p.Err})
	}
	return err
}

// Look reads the paths of the changes with their contents, the folders above
// them and what is below, and nothing else.
func Look(ctx context.Context, root string, format snapshot.Format, changes []Change) (*View, error) {
	wanted, above := map[superqode.RelPath]bool{}, map[superqode.RelPath]bool{}
	for _, c := range changes {
		for _, e := range []*snapshot.Entry{c.Old, c.New} {
			if e == nil {
				continue
			}
			wanted[e.Path] = true
			for dir := e.Path.Parent(); dir != ""; dir = dir.Parent() {
				above[dir] = true
			}
		}
	}
	v := &View{others: map[superqode.RelPath]bool{}}
	var mu sync.Mutex
	skip := func(path string, _ snapshot.Kind) bool {
		p := superqode.RelPath(path)
		for at := p; at != ""; at = at.Parent() {
			if wanted[at] || at == p && above[at] {
				return false
			}
		}
		mu.Lock()
		v.others[p.Parent()] = true
		mu.Unlock()
		return true
	}
	var err error
	v.Now, v.Problems, err = snapshot.Scan(ctx, root, snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly, Skip: skip})
	if err != nil {
		return nil, fmt.Errorf("look at the origin: %w", err)
	}
	read := &snapshot.Snapshot{Root: v.Now.Root, Format: format, Taken: v.Now.Taken}
	var at []int
	for i := range v.Now.Entries {
		if e := &v.Now.Entries[i]; e.Kind == snapshot.File && wanted[e.Path] {
			read.Entries, at = append(read.Entries, *e), append(at, i)
		}
	}
	more, err := snapshot.HashMissing(ctx, read)
	if err != nil {
		return nil, fmt.Errorf("look at the origin: %w", err)
	}
	for i, k := range at {
		v.Now.Entries[k] = read.Entries[i]
	}
	v.Problems = append(v.Problems, more...)
	return v, nil
}
