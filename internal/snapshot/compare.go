package snapshot

import (
	"cmp"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// CompareOptions says what Compare reports.
type CompareOptions struct {
	Dirs    bool // directories too; else they count as absent
	Renames bool // a deleted and a created file of the same content are one rename
}

// Compare returns how final differs from base, sorted by path; lines are not
// counted (-1). Files whose contents are both known differ by their ids alone;
// where one is not known, they are the same only when their stat data are.
//
// Renames are the exact ones, one to one and chosen as git chooses them; see
// Store.Describe for those that also change the content. A renamed file's
// OldMode and NewMode may differ.
func Compare(base, final *Snapshot, opt CompareOptions) []superqode.Change {
	c := comparison{dirs: opt.Dirs}
	for old, now := range Join(base.Entries, final.Entries) {
		if old == nil || now == nil || !old.Same(now) {
			c.differ(old, now)
		}
	}
	if opt.Renames {
		c.findRenames()
	}
	return c.changes()
}

// pair is one path that differs; old or now is nil where it did not exist. A
// rename is a pair with two paths.
type pair struct{ old, now *Entry }

type comparison struct {
	dirs  bool
	pairs []pair
}

// differ records a path. A file that became a directory is a deleted file where
// directories do not count.
func (c *comparison) differ(old, now *Entry) {
	if !c.dirs && old != nil && old.Kind == Dir {
		old = nil
	}
	if !c.dirs && now != nil && now.Kind == Dir {
		now = nil
	}
	if old != nil || now != nil {
		c.pairs = append(c.pairs, pair{old, now})
	}
}

// renameTries is how many deleted files of one content are looked at for one of
// the wanted base name. It is git's number (diffcore-rename.c).
const renameTries = 100

// findRenames joins each created file, in the order of paths, with a deleted one
// of the same content: the first of the same base name, else the first, as git
// does.
func (c *comparison) findRenames() {
	gone := map[ID][]int{}
	for i, p := range c.pairs {
		if p.now == nil && isContent(p.old) {
			gone[p.old.ID] = append(gone[p.old.ID], i)
		}
	}
	if len(gone) == 0 {
		return
	}
	taken := false
	for i, p := range c.pairs {
		if p.old != nil || p.now == nil || !isContent(p.now) {
			continue
		}
		list := gone[p.now.ID]
		k := pickRename(c.pairs, list, p.now)
		if k < 0 {
			continue
		}
		from := list[k]
		c.pairs[i].old = c.pairs[from].old
		c.pairs[from].old, taken = nil, true
		if k > 0 {
			copy(list[1:k+1], list[:k]) // at most renameTries of them move
		}
		gone[p.now.ID] = list[1:]
	}
	if taken {
		c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return p.old == nil && p.now == nil })
	}
}

func isContent(e *Entry) bool { return (e.Kind == File || e.Kind == Link) && !e.ID.IsZero() }

// pickRename returns the position in list of the best source for now, or -1.
func pickRename(pairs []pair, list []int, now *Entry) int {
	best := -1
	_, name := dirfd.Split(now.Path)
	for k := 0; k < len(list) && k < renameTries; k++ {
		old := pairs[list[k]].old
		if old.Kind != now.Kind {
			continue
		}
		if _, was := dirfd.Split(old.Path); was == name {
			return k
		}
		if best < 0 {
			best = k
		}
	}
	return best
}

func (c *comparison) changes() []superqode.Change {
	list := make([]superqode.Change, 0, len(c.pairs))
	for _, p := range c.pairs {
		ch := superqode.Change{LinesAdded: -1, LinesRemoved: -1, Type: p.change()}
		if p.old != nil {
			ch.Path, ch.OldMode = p.old.Path, p.old.Mode()
		}
		if p.now != nil {
			if ch.Type == superqode.ChangeRenamed {
				ch.OldPath = ch.Path
			}
			ch.Path, ch.NewMode = p.now.Path, p.now.Mode()
		}
		list = append(list, ch)
	}
	slices.SortStableFunc(list, func(a, b superqode.Change) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

func (p pair) change() superqode.ChangeType {
	switch {
	case p.old == nil:
		return superqode.ChangeCreated
	case p.now == nil:
		return superqode.ChangeDeleted
	case p.old.Path != p.now.Path:
		return superqode.ChangeRenamed
	case p.old.Kind != p.now.Kind:
		return superqode.ChangeKind
	case !p.old.SameContent(p.now):
		return superqode.ChangeModified
	}
	return superqode.ChangeMode
}
