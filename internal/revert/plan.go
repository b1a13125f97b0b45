package revert

import (
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Plan is what has to change in a directory, decided before anything changes.
// All lists are sorted by path.
type Plan struct {
	Now    *snapshot.Snapshot // the scan that the plan was made from
	Write  []snapshot.Entry   // to create or replace, as they have to be in the end
	Adjust []snapshot.Entry   // the same contents with other permission bits, owner or time, as they have to be
	Remove []snapshot.Entry   // to remove, as they are now
	Lost   []string           // differ, but their contents were not recorded

	spared []snapshot.Problem        // left alone after all, see Spare
	links  map[inode]*snapshot.Entry // files with several hard links of which one still exists
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool {
	return len(p.Write) == 0 && len(p.Adjust) == 0 && len(p.Remove) == 0
}

// Paths returns the paths whose type, contents or permission bits change, each
// once, sorted. A time or an owner alone does not count.
func (p *Plan) Paths() []string {
	var paths []string
	for _, list := range [][]snapshot.Entry{p.Write, p.Remove} {
		for i := range list {
			paths = append(paths, string(list[i].Path))
		}
	}
	for i := range p.Adjust {
		if now := p.Now.Find(p.Adjust[i].Path); now == nil || now.Perm != p.Adjust[i].Perm {
			paths = append(paths, string(p.Adjust[i].Path))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Overwritten returns the existing entries that the plan replaces or removes,
// sorted: what to save before applying it.
func (p *Plan) Overwritten() []snapshot.Entry {
	list := slices.Clone(p.Remove)
	for i := range p.Write {
		if e := p.Now.Find(p.Write[i].Path); e != nil {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, snapshot.ByPath)
	return slices.CompactFunc(list, func(a, b snapshot.Entry) bool { return a.Path == b.Path })
}

// Spare takes a path out of the plan, with what the plan creates below it or in
// its place: its content could not be saved, for the reason given.
func (p *Plan) Spare(path superqode.RelPath, reason error) {
	p.spared = append(p.spared, snapshot.Problem{Path: path, Err: reason})
	meets := func(e snapshot.Entry) bool {
		return superqode.Within(e.Path, path) || e.Kind != snapshot.Dir && superqode.Within(path, e.Path)
	}
	p.Write = slices.DeleteFunc(p.Write, meets)
	p.Remove = slices.DeleteFunc(p.Remove, func(e snapshot.Entry) bool { return e.Path == path })
	p.Adjust = slices.DeleteFunc(p.Adjust, func(e snapshot.Entry) bool { return e.Path == path })
}

// Plan compares the directory, as a scan found it, with the base. within limits
// it to some paths and what is below them; none means all.
func (t *Tree) Plan(now *snapshot.Snapshot, within []superqode.RelPath) *Plan {
	p := &Plan{Now: now}
	for old, e := range snapshot.Join(t.Base.Entries, now.Entries) {
		switch {
		case old == nil:
			if inside(e.Path, within) {
				p.Remove = append(p.Remove, *e)
			}
		case !inside(old.Path, within):
		case e == nil:
			p.write(t, *old)
		default:
			p.both(t, *old, *e)
		}
	}
	p.joinHardLinks(t, within)
	if len(within) > 0 {
		p.addParents(t)
	}
	return p
}

// write plans to create an entry, if its content is known.
func (p *Plan) write(t *Tree, e snapshot.Entry) {
	if e.Kind == snapshot.File && e.ID.IsZero() && t.Aside == "" {
		p.Lost = append(p.Lost, string(e.Path))
		return
	}
	p.Write = append(p.Write, e)
}

// both plans for a path that is in the base and exists now.
func (p *Plan) both(t *Tree, old, now snapshot.Entry) {
	if old.Kind != now.Kind {
		if old.Kind == snapshot.Dir || now.Kind == snapshot.Dir { // a rename cannot replace one by the other
			p.Remove = append(p.Remove, now)
		}
		p.write(t, old)
		return
	}
	// Another file's hard link with the same content would change with it.
	joined := old.Kind == snapshot.File && old.Stat.Nlink == 1 && now.Stat.Nlink > 1 && inodeOf(&old) != inodeOf(&now)
	if joined || !same(&old, &now) {
		p.write(t, old)
		return
	}
	if old.Kind != snapshot.Link && old.Perm != now.Perm || old.Stat.Mtime != now.Stat.Mtime ||
		old.Stat.UID != now.Stat.UID || old.Stat.GID != now.Stat.GID {
		p.Adjust = append(p.Adjust, old)
	}
}

// same reports whether two entries of one path and kind have the same content.
// A file with unknown content has, as long as nobody can have written to it.
func same(old, now *snapshot.Entry) bool {
	return old.SameContent(now) || old.Kind == snapshot.File && (old.ID.IsZero() || now.ID.IsZero()) && old.SameFile(now)
}

// addParents adds the folders above what is written if they are missing or are
// not folders now: a path cannot come back without them.
func (p *Plan) addParents(t *Tree) {
	have := map[superqode.RelPath]bool{}
	for i := range p.Write {
		have[p.Write[i].Path] = true
	}
	for _, e := range slices.Clone(p.Write) {
		for dir := e.Path.Parent(); dir != "" && !have[dir]; dir = dir.Parent() {
			have[dir] = true
			old, now := t.Base.Find(dir), p.Now.Find(dir)
			if old == nil || now != nil && now.Kind == snapshot.Dir {
				continue
			}
			if now != nil {
				p.Remove = append(p.Remove, *now)
			}
			p.Write = append(p.Write, *old)
		}
	}
	slices.SortFunc(p.Write, snapshot.ByPath)
	slices.SortFunc(p.Remove, snapshot.ByPath)
}

// inside reports whether a path is one of within, or below one; none means all.
func inside(path superqode.RelPath, within []superqode.RelPath) bool {
	return len(within) == 0 || slices.ContainsFunc(within, func(w superqode.RelPath) bool { return superqode.Within(path, w) })
}
