package merge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/swap"
	"github.com/seed-2d964004/superqode/internal/text"
)

// layout finds the order of the steps: removals first, then folders from the
// top, then files.
type layout struct {
	view    *View
	steps   []Step
	keep    string                     // a folder of the origin that stays even if it is empty
	removed map[superqode.RelPath]bool // files and links to remove
	cleared map[superqode.RelPath]bool // folders to remove: true if a file takes their place, false if they become empty
	made    map[superqode.RelPath]uint32
	plan    *swap.Plan
}

// Plan turns steps without conflicts into a plan.
func Plan(view *View, steps []Step, keep string) *swap.Plan {
	l := &layout{
		view: view, steps: steps, keep: keep, removed: map[superqode.RelPath]bool{},
		cleared: map[superqode.RelPath]bool{}, made: map[superqode.RelPath]uint32{},
		plan: &swap.Plan{Phase: swap.Staging, Nonce: strings.ToLower(rand.Text()[:12])},
	}
	for i := range steps {
		if e := steps[i].Remove; e != nil {
			l.removed[e.Path] = true
		}
	}
	for i := range steps {
		if e := steps[i].Put; e != nil && !steps[i].Bits {
			l.clear(e.Path)
			l.makeFolders(e)
		}
	}
	l.clearEmptied()
	for _, path := range slices.Sorted(maps.Keys(l.removed)) {
		l.add(swap.Step{Op: swap.Remove, Path: superqode.HostPath(path), Side: l.side(path),
			Was: stateOf(view.Now.Find(path))})
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(l.cleared))) { // what is in a folder sorts after it
		l.add(swap.Step{Op: swap.Rmdir, Path: superqode.HostPath(path), Was: stateOf(view.Now.Find(path)),
			Optional: !l.cleared[path]})
	}
	for _, path := range slices.Sorted(maps.Keys(l.made)) {
		l.add(swap.Step{Op: swap.Mkdir, Path: superqode.HostPath(path), Side: l.side(path), Perm: l.made[path]})
	}
	l.addPuts()
	return l.plan
}

func (l *layout) add(s swap.Step) { l.plan.Steps = append(l.plan.Steps, s) }

func (l *layout) addPuts() {
	for i := range l.steps {
		e := l.steps[i].Put
		if e == nil {
			continue
		}
		s := swap.Step{Op: swap.Put, Path: superqode.HostPath(e.Path), Side: l.side(e.Path), Perm: e.Perm,
			Link: superqode.HostPath(e.Link)}
		if e.Kind == snapshot.File {
			s.Data = e.ID.String()
		}
		if now := l.view.Now.Find(e.Path); now != nil && now.Kind != snapshot.Dir {
			s.Was = stateOf(now)
		}
		if l.steps[i].Bits {
			s = swap.Step{Op: swap.Chmod, Path: s.Path, Was: s.Was, Perm: e.Perm}
		}
		l.add(s)
	}
}

// clear plans to remove the folder, empty by then, whose place a file takes.
func (l *layout) clear(path superqode.RelPath) {
	if e := l.view.Now.Find(path); e == nil || e.Kind != snapshot.Dir {
		return
	}
	l.cleared[path] = true
	for _, e := range l.view.Now.Below(path) {
		if e.Kind == snapshot.Dir {
			l.cleared[e.Path] = true
		}
	}
}

// makeFolders plans the folders above a new path. A session's folders are not
// part of its patch; the new ones let those who may read a file in them get
// there, and nobody else.
func (l *layout) makeFolders(e *snapshot.Entry) {
	perm := uint32(0o755)
	if e.Kind == snapshot.File {
		perm = 0o700 | e.Perm&0o666 | e.Perm&0o444>>2
	}
	for dir := e.Path.Parent(); dir != ""; dir = dir.Parent() {
		if now := l.view.Now.Find(dir); now != nil && now.Kind == snapshot.Dir {
			return
		}
		l.made[dir] |= perm
	}
}

// clearEmptied plans to remove the folders in which nothing is left, as git
// does when it deletes the last file of one. The caller's current folder, and
// those above it, stay.
func (l *layout) clearEmptied() {
	left := map[superqode.RelPath]int{} // what a folder will still hold
	for i := range l.view.Now.Entries {
		left[l.view.Now.Entries[i].Path.Parent()]++
	}
	for i := range l.steps {
		if e := l.steps[i].Put; e != nil && (l.view.Now.Find(e.Path) == nil || l.removed[e.Path]) {
			left[e.Path.Parent()]++
		}
	}
	for dir := range l.made {
		if l.view.Now.Find(dir) == nil {
			left[dir.Parent()]++
		}
	}
	for path := range l.removed {
		if _, again := l.made[path]; again {
			continue // a folder comes in its place
		}
		for dir := path.Parent(); dir != ""; dir = dir.Parent() {
			left[dir]--
			if _, gone := l.cleared[dir]; gone || left[dir] > 0 || l.view.others[dir] ||
				superqode.Within(l.keep, string(dir)) {
				break
			}
			l.cleared[dir] = false
		}
	}
}

// side returns the nearest folder above path that is there now and stays.
func (l *layout) side(path superqode.RelPath) superqode.HostPath {
	dir := path.Parent()
	for ; dir != ""; dir = dir.Parent() {
		_, gone := l.cleared[dir]
		if e := l.view.Now.Find(dir); e != nil && e.Kind == snapshot.Dir && !gone {
			break
		}
	}
	return superqode.HostPath(dir)
}

// stateOf is an entry as package swap knows it.
func stateOf(e *snapshot.Entry) *swap.State {
	return &swap.State{
		Ino: e.Stat.Ino, Size: e.Size, Mtime: e.Stat.Mtime, Ctime: e.Stat.Ctime, Mode: e.Mode(), Nlink: e.Stat.Nlink,
		UID: e.Stat.UID, GID: e.Stat.GID,
	}
}

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
	skip := func(p superqode.RelPath, _ snapshot.Kind) bool {
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
	v.Now, v.Problems, err = snapshot.Scan(ctx, root,
		snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly, Skip: skip})
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
