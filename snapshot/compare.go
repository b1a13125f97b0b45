package snapshot

import (
	"cmp"
	"path"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// CompareOptions says what Compare reports.
type CompareOptions struct {
	Dirs    bool // directories too; else files, links and others only
	Renames bool // a deleted and a created file of the same content are one rename
}

// Compare returns how final differs from base, sorted by path. Lines are not
// counted (-1). Renames are found by content alone; see Store.Describe for those
// that also change it.
func Compare(base, final *Snapshot, opt CompareOptions) []superqode.Change {
	var c comparison
	i, k := 0, 0
	for i < len(base.Entries) || k < len(final.Entries) {
		switch {
		case k == len(final.Entries) || i < len(base.Entries) && base.Entries[i].Path < final.Entries[k].Path:
			c.add(superqode.ChangeDeleted, &base.Entries[i], nil)
			i++
		case i == len(base.Entries) || final.Entries[k].Path < base.Entries[i].Path:
			c.add(superqode.ChangeCreated, nil, &final.Entries[k])
			k++
		default:
			c.both(&base.Entries[i], &final.Entries[k])
			i, k = i+1, k+1
		}
	}
	if opt.Renames {
		c.findRenames()
	}
	return c.changes(opt.Dirs)
}

// pair is one path that differs; old or now is nil where it did not exist.
type pair struct {
	change   superqode.ChangeType
	old, now *Entry
}

type comparison struct{ pairs []pair }

func (c *comparison) add(t superqode.ChangeType, old, now *Entry) {
	c.pairs = append(c.pairs, pair{t, old, now})
}

func (c *comparison) both(old, now *Entry) {
	switch {
	case old.Kind != now.Kind:
		c.add(superqode.ChangeKind, old, now)
	case old.ID != now.ID || old.Link != now.Link:
		c.add(superqode.ChangeModified, old, now)
	case old.Perm != now.Perm && old.Kind != Link:
		c.add(superqode.ChangeMode, old, now)
	}
}

// findRenames joins each created file with a deleted one of the same kind and
// content: one of the same base name if there is one, else the first.
func (c *comparison) findRenames() {
	gone := map[ID][]*pair{}
	for i := range c.pairs {
		if p := &c.pairs[i]; p.change == superqode.ChangeDeleted && !p.old.ID.IsZero() {
			gone[p.old.ID] = append(gone[p.old.ID], p)
		}
	}
	if len(gone) == 0 {
		return
	}
	match := func(sameName bool) {
		for i := range c.pairs {
			p := &c.pairs[i]
			if p.change != superqode.ChangeCreated || p.now.ID.IsZero() {
				continue
			}
			from := slices.IndexFunc(gone[p.now.ID], func(q *pair) bool {
				return q.now == nil && q.old.Kind == p.now.Kind && (!sameName || path.Base(q.old.Path) == path.Base(p.now.Path))
			})
			if from < 0 {
				continue
			}
			q := gone[p.now.ID][from]
			p.change, p.old = superqode.ChangeRenamed, q.old
			q.now, q.change = p.now, "" // taken: told by its new name
		}
	}
	match(true)
	match(false)
}

func (c *comparison) changes(dirs bool) []superqode.Change {
	list := make([]superqode.Change, 0, len(c.pairs))
	for _, p := range c.pairs {
		if p.change == "" || !dirs && (p.old == nil || p.old.Kind == Dir) && (p.now == nil || p.now.Kind == Dir) {
			continue
		}
		ch := superqode.Change{Type: p.change, LinesAdded: -1, LinesRemoved: -1}
		if p.old != nil {
			ch.Path, ch.OldMode = relPath(p.old), p.old.Mode()
		}
		if p.now != nil {
			ch.Path, ch.NewMode = relPath(p.now), p.now.Mode()
		}
		if p.change == superqode.ChangeRenamed {
			ch.OldPath = relPath(p.old)
		}
		list = append(list, ch)
	}
	slices.SortStableFunc(list, func(a, b superqode.Change) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	return list
}

// relPath can not fail: a scan makes clean relative paths only, and Load checks
// what it reads.
func relPath(e *Entry) superqode.RelPath {
	p, err := superqode.ParseRelPath(e.Path)
	if err != nil {
		return superqode.RelPath{}
	}
	return p
}
