package linked

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// chooser decides which entries of the origin come along.
type chooser struct {
	c       *creation
	entries []snapshot.Entry
	keep    []verdict
	ask     []int32 // entries for git to check next
}

func newChooser(c *creation) *chooser {
	return &chooser{c: c, entries: c.origin.Entries, keep: make([]verdict, len(c.origin.Entries))}
}

type verdict uint8

const (
	undecided verdict = iota // left out, unless something below it comes along
	pending                  // below an untracked folder that is not checked yet
	kept
	ignored // by git, with all that is below it
)

// choose returns what comes along: tracked files that are on disk, untracked
// ones that are not ignored, ignored ones that are included, everything in
// submodules and nested repositories, empty folders that are not ignored, and
// the folders above all these.
func (c *creation) choose(ctx context.Context) (*snapshot.Snapshot, error) {
	ch := newChooser(c)
	ch.tracked()
	if err := ch.untracked(ctx); err != nil {
		return nil, err
	}
	ch.included()
	ch.parents()
	return ch.chosen(), nil
}

// tracked keeps what the index names and queues the rest: single files in
// tracked folders, and whole folders of which the index knows nothing.
func (ch *chooser) tracked() {
	x := ch.c.index
	for i := range ch.entries {
		e := &ch.entries[i]
		if ch.keep[i] != undecided {
			continue
		}
		if e.Kind != snapshot.Dir {
			if ch.c.facts[i].pos >= 0 {
				ch.keep[i] = kept
			} else {
				ch.ask = append(ch.ask, int32(i))
			}
			continue
		}
		pos, any := x.SearchDir(e.Path)
		switch {
		// and files where a sparse checkout expects none
		case ch.c.isSubmodule(i), any && isSparseDir(x.Path(pos), e.Path):
			ch.keepAll(i)
		case !any:
			lo, hi := below(ch.entries, e.Path)
			for k := lo; k < hi; k++ {
				ch.keep[k] = pending
			}
			ch.ask = append(ch.ask, int32(i))
		case i+1 == len(ch.entries) || cmpBelow(ch.entries[i+1].Path, e.Path) != 0:
			if lo, hi := below(ch.entries, e.Path); lo == hi { // tracked files, all of them deleted
				ch.ask = append(ch.ask, int32(i))
			}
		}
	}
}

// isSubmodule reports whether entry i is a folder that the index names as a
// submodule, rather than one that replaced a tracked file.
func (c *creation) isSubmodule(i int) bool {
	return c.facts[i].pos >= 0 && c.index.At(int(c.facts[i].pos)).Mode&modeType == modeLink
}

func isSparseDir(p, dir superqode.RelPath) bool { return len(p) == len(dir)+1 }

// keepAll keeps entry i and, if it is a folder, everything in it.
func (ch *chooser) keepAll(i int) {
	ch.keep[i] = kept
	if ch.entries[i].Kind != snapshot.Dir {
		return
	}
	lo, hi := below(ch.entries, ch.entries[i].Path)
	for k := lo; k < hi; k++ {
		ch.keep[k] = kept
	}
}

// untracked checks what is queued, folder by folder from the top: nothing below an
// ignored folder.
func (ch *chooser) untracked(ctx context.Context) error {
	if len(ch.ask) == 0 {
		return nil
	}
	nested := map[superqode.RelPath]bool{}
	for _, n := range ch.c.nested {
		nested[n.path] = true
	}
	ignores, err := ch.c.ignores(ctx)
	if err != nil {
		return err
	}
	for len(ch.ask) > 0 {
		round := ch.ask
		ch.ask = nil
		for _, i := range round {
			if e := &ch.entries[i]; ignores(e.Path, e.Kind == snapshot.Dir) {
				ch.keep[i] = ignored
			} else {
				ch.take(int(i), nested)
			}
		}
	}
	return ctx.Err()
}

// take keeps an entry that is not ignored, or queues what is in it.
func (ch *chooser) take(i int, nested map[superqode.RelPath]bool) {
	e := &ch.entries[i]
	if e.Kind != snapshot.Dir || nested[e.Path] {
		ch.keepAll(i)
		return
	}
	lo, hi := below(ch.entries, e.Path)
	if lo == hi {
		ch.keep[i] = kept
		return
	}
	for k := lo; k < hi; k++ {
		if strings.IndexByte(string(ch.entries[k].Path[len(e.Path)+1:]), '/') < 0 {
			ch.ask = append(ch.ask, int32(k))
		}
	}
}

// included keeps files that are named although git ignores them, and nested
// repositories.
func (ch *chooser) included() {
	named := ch.c.includes()
	if named == nil {
		return
	}
	nested := map[superqode.RelPath]bool{}
	for _, n := range ch.c.nested {
		nested[n.path] = true
	}
	for i := range ch.entries {
		e := &ch.entries[i]
		if isDir := e.Kind == snapshot.Dir; ch.keep[i] != kept && (!isDir || nested[e.Path]) && named(e.Path, isDir) {
			ch.keepAll(i)
			ch.brought(e.Path)
		}
	}
}

// brought records an ignored path that comes along, and the ignored folder around it in
// place of the second one from there.
func (ch *chooser) brought(path superqode.RelPath) {
	list := &ch.c.included
	last := superqode.RelPath("")
	if n := len(*list); n > 0 {
		last = (*list)[n-1]
	}
	for dir := path.Parent(); dir != ""; dir = dir.Parent() {
		if k, ok := ch.find(dir); ok && ch.keep[k] == ignored && (last == dir || strings.HasPrefix(string(last), string(dir)+"/")) {
			(*list)[len(*list)-1] = dir
			return
		}
	}
	*list = append(*list, path)
}

func (ch *chooser) find(p superqode.RelPath) (int, bool) { return findEntry(ch.entries, p) }

func findEntry(entries []snapshot.Entry, path superqode.RelPath) (int, bool) {
	return slices.BinarySearchFunc(entries, path, func(e snapshot.Entry, p superqode.RelPath) int {
		return cmp.Compare(e.Path, p)
	})
}

// parents keeps the folders above everything that is kept.
func (ch *chooser) parents() {
	last := superqode.RelPath("")
	for i := range ch.entries {
		if ch.keep[i] != kept {
			continue
		}
		dir := ch.entries[i].Path.Parent()
		if dir == last {
			continue
		}
		last = dir
		for ; dir != ""; dir = dir.Parent() {
			k, ok := ch.find(dir)
			if !ok || ch.keep[k] == kept {
				break // what is above it was kept in its turn
			}
			ch.keep[k] = kept
		}
	}
}

// chosen returns the kept entries, without sockets, FIFOs and devices, which
// cannot be copied.
func (ch *chooser) chosen() *snapshot.Snapshot {
	n := 0
	for i := range ch.entries {
		if ch.keep[i] == kept && ch.entries[i].Kind == snapshot.Other {
			ch.keep[i] = undecided
			ch.c.warn("left out: %q is a socket, FIFO or device", ch.entries[i].Path)
		}
		if ch.keep[i] == kept {
			n++
		}
	}
	s := *ch.c.origin
	if n == len(ch.entries) {
		return &s
	}
	s.Entries = make([]snapshot.Entry, 0, n)
	for i := range ch.entries {
		if ch.keep[i] == kept {
			s.Entries = append(s.Entries, ch.entries[i])
		}
	}
	return &s
}
