// Package merge decides what happens to one side's changes if another side has
// changed things too, and merges the contents. It writes only files of its own
// Scratch.
//
// Ends are the two states of a session's patch, and Ends.Pairs the changes
// between them. Look reads the part of a folder that they affect, a Decider
// makes a Step or a Conflict of each, and Plan sorts the steps so that they can
// be carried out. The rules are those of git's three-way merge with the base in
// the middle, the origin as "ours" and the session as "theirs":
//
//   - what only one side changed, that side wins; what both changed alike is done
//   - two texts are merged line by line; permission bits are merged bit by bit
//   - links and binary files are whole: two different changes are a conflict
//   - an edit follows a rename by the session; an edit against a deletion is a
//     conflict
//   - anything in the way that the session did not know is a conflict: a file, a
//     folder that would not be empty, a link or file where a folder is needed
//
// Hunks of a patch can be chosen one by one: they are numbered from 1 over the
// whole diff as it is printed.
package merge

import (
	"cmp"
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Change is one path, or one rename, of a session's patch. The entries have
// the real permission bits. old or new is nil where the path was not there.
type Change struct {
	Old, New       *snapshot.Entry
	Added, Removed int // lines; 0 for binary contents
	Binary         bool
}

// Path is the path under which the change is reported.
func (c *Change) Path() superqode.RelPath {
	if c.New != nil {
		return c.New.Path
	}
	return c.Old.Path
}

// Renamed reports whether the change has two paths.
func (c *Change) Renamed() bool {
	return c.Old != nil && c.New != nil && c.Old.Path != c.New.Path
}

// Step is what to do about one change.
type Step struct {
	Change
	Conflict *Conflict
	Put      *snapshot.Entry // what its path has to hold in the end; nil: nothing to create
	Bits     bool            // set only put's permission bits
	Remove   *snapshot.Entry // as it is in the origin; nil: nothing to delete
	Merged   bool            // put's contents are neither side's
}

// Done reports whether the origin has the change already.
func (s *Step) Done() bool { return s.Conflict == nil && s.Put == nil && s.Remove == nil }

// ConflictKind says what two sides disagree about, in git's words.
type ConflictKind string

// The kinds of conflict.
const (
	ConflictContent      ConflictKind = "content"
	ConflictBinary       ConflictKind = "binary"
	ConflictAddAdd       ConflictKind = "add/add"
	ConflictModifyDelete ConflictKind = "modify/delete"
	ConflictRenameDelete ConflictKind = "rename/delete"
	ConflictRenameAdd    ConflictKind = "rename/add"
	ConflictRenameRename ConflictKind = "rename/rename"
	ConflictTypes        ConflictKind = "distinct types"
	ConflictFolder       ConflictKind = "file/directory"
	ConflictLink         ConflictKind = "link"
	ConflictClaim        ConflictKind = "claim" // of several agents: another one had claimed the place
)

// Conflict is one path that cannot be brought into the origin.
type Conflict struct {
	Path    superqode.RelPath
	Kind    ConflictKind
	Message string // a line as git prints it: "CONFLICT (content): Merge conflict in a.go"
}

// The sides' names in messages.
const sideOrigin, sideSession = "origin", "session"

// merger merges two texts that both differ from base. ok is false when they
// conflict, and then binary says whether they were not texts.
type merger func(base, ours, theirs *snapshot.Entry) (merged snapshot.Entry, ok, binary bool, err error)

// Decider decides against the origin as Look found it.
type Decider struct {
	Now   *snapshot.Snapshot // every path of the changes, with the folders above and everything below
	Merge merger
	// similar reports whether a file of the origin comes from base, as git
	// decides about renames: if half of it is the same.
	Similar func(base, now *snapshot.Entry) (bool, error)

	Ours   func(path superqode.RelPath) string     // who changed a path before; nil: the origin
	Theirs string                                  // whose changes these are; "": the session
	Moved  map[superqode.RelPath]superqode.RelPath // where files of the base are by now, if somebody renamed them
}

// before names who changed a path before.
func (d *Decider) before(path superqode.RelPath) string {
	if d.Ours == nil {
		return sideOrigin
	}
	return d.Ours(path)
}

// side names whose changes these are.
func (d *Decider) side() string { return cmp.Or(d.Theirs, sideSession) }

// Decide returns a step for each change, in their order.
func (d *Decider) Decide(changes []Change) ([]Step, error) {
	steps := make([]Step, len(changes))
	removed := map[superqode.RelPath]bool{}
	for i, c := range changes {
		var err error
		if steps[i], err = d.one(c); err != nil {
			return nil, err
		}
		if e := steps[i].Remove; e != nil {
			removed[e.Path] = true
		}
	}
	for i := range steps {
		if s := &steps[i]; s.Conflict == nil {
			s.Conflict = d.inTheWay(s, removed)
		}
	}
	return steps, nil
}

func (d *Decider) one(c Change) (s Step, err error) {
	s.Change = c
	switch {
	case c.Old == nil:
		d.create(&s)
	case c.New == nil:
		d.delete(&s)
	case c.Renamed():
		err = d.rename(&s)
	default:
		err = d.modify(&s)
	}
	return s, err
}

func (d *Decider) create(s *Step) {
	now := d.Now.Find(s.New.Path)
	switch {
	case now == nil, now.Kind == snapshot.Dir:
		s.Put = fresh(s.New, s.New.Path)
	case !alike(now, s.New):
		s.fail(ConflictAddAdd, "Merge conflict in "+text.Printable(s.New.Path))
	}
}

func (d *Decider) delete(s *Step) {
	now := d.Now.Find(d.at(s.Old.Path))
	switch {
	case now != nil && now.Path != s.Old.Path:
		s.fail(ConflictRenameDelete, text.Printable(s.Old.Path)+" renamed to "+text.Printable(now.Path)+" in "+
			d.before(now.Path)+", but deleted in "+d.side()+".")
	case now == nil, now.Kind == snapshot.Dir: // whatever is there, the file is not
	case alike(now, s.Old):
		s.Remove = now
	default:
		s.fail(ConflictModifyDelete,
			text.Printable(s.Old.Path)+" deleted in "+d.side()+" and modified in "+d.before(s.Old.Path)+".")
	}
}

func (d *Decider) modify(s *Step) error {
	now := d.Now.Find(d.at(s.New.Path))
	if now == nil {
		s.fail(ConflictModifyDelete,
			text.Printable(s.New.Path)+" deleted in "+d.before(s.New.Path)+" and modified in "+d.side()+".")
		return nil
	}
	want, err := d.threeWay(s, now)
	if err != nil || s.Conflict != nil {
		return err
	}
	s.replace(now, want)
	return nil
}

// at returns where a file of the base is by now.
func (d *Decider) at(path superqode.RelPath) superqode.RelPath {
	return cmp.Or(d.Moved[path], path)
}

// replace plans to replace what is there by what is wanted.
func (s *Step) replace(now *snapshot.Entry, want snapshot.Entry) {
	want.Path = now.Path
	switch {
	case now.SameContent(&want) && (now.Perm == want.Perm || now.Kind == snapshot.Link):
		s.Merged = false
	case now.SameContent(&want):
		s.Put, s.Bits, s.Merged = &want, true, false
	default:
		s.Put = &want
	}
}

func (d *Decider) rename(s *Step) error {
	from, to := d.Now.Find(s.Old.Path), d.Now.Find(s.New.Path)
	if from == nil || from.Kind == snapshot.Dir {
		return d.renameGone(s, to)
	}
	want, err := d.threeWay(s, from)
	if err != nil || s.Conflict != nil {
		return err
	}
	switch {
	case to == nil, to.Kind == snapshot.Dir:
		s.Put = fresh(&want, s.New.Path)
	case !alike(to, &want):
		s.fail(ConflictRenameAdd, "Rename "+text.Printable(s.Old.Path)+"->"+text.Printable(s.New.Path)+" in "+d.side()+
			".  Added "+text.Printable(s.New.Path)+" in "+d.before(s.New.Path))
		return nil
	}
	s.Remove = from
	return nil
}

// renameGone decides about a rename of a file that the origin no longer has,
// because it was renamed or deleted there.
func (d *Decider) renameGone(s *Step, to *snapshot.Entry) error {
	if to != nil && alike(to, s.New) {
		return nil
	}
	if to != nil && to.Kind == s.Old.Kind {
		renamed := to.SameContent(s.Old)
		if !renamed && to.Kind == snapshot.File {
			var err error
			if renamed, err = d.Similar(s.Old, to); err != nil {
				return err
			}
		}
		if renamed {
			want, err := d.threeWay(s, to)
			if err == nil && s.Conflict == nil {
				s.replace(to, want)
			}
			return err
		}
	}
	if at := d.at(s.Old.Path); at != s.Old.Path {
		s.fail(ConflictRenameRename, text.Printable(s.Old.Path)+" renamed to "+text.Printable(at)+" in "+d.before(at)+
			" and to "+text.Printable(s.New.Path)+" in "+d.side()+".")
		return nil
	}
	s.fail(ConflictRenameDelete, text.Printable(s.Old.Path)+" renamed to "+text.Printable(s.New.Path)+" in "+d.side()+
		", but deleted in "+d.before(s.Old.Path)+".")
	return nil
}

// threeWay merges the session's change from old to new with what is there now.
// The result has now's path. It records a conflict in s.
func (d *Decider) threeWay(s *Step, now *snapshot.Entry) (snapshot.Entry, error) {
	want := *now
	if now.Kind != s.Old.Kind || s.New.Kind != s.Old.Kind {
		switch {
		case alike(now, s.Old):
			want = *fresh(s.New, now.Path)
		case !alike(now, s.New):
			s.fail(ConflictTypes, text.Printable(s.New.Path)+" had different types on each side.")
		}
		return want, nil
	}
	if now.Kind == snapshot.File {
		changed := (s.Old.Perm ^ s.New.Perm) & 0o777
		want.Perm = now.Perm&^changed | s.New.Perm&changed
	}
	switch {
	case s.Old.SameContent(s.New), now.SameContent(s.New):
	case now.SameContent(s.Old):
		want.ID, want.Size, want.Link = s.New.ID, s.New.Size, s.New.Link
	case now.Kind == snapshot.Link:
		s.fail(ConflictContent, "Merge conflict in "+text.Printable(s.New.Path))
	default:
		merged, ok, binary, err := d.Merge(s.Old, now, s.New)
		switch {
		case err != nil:
			return want, err
		case binary:
			s.fail(ConflictBinary, "")
		case !ok:
			s.fail(ConflictContent, "Merge conflict in "+text.Printable(s.New.Path))
		default:
			want.ID, want.Size, s.Merged = merged.ID, merged.Size, merged.ID != s.New.ID
		}
	}
	return want, nil
}

// fail records a conflict. git reports a conflict of two binary files as one of
// contents, after a warning.
func (s *Step) fail(kind ConflictKind, message string) {
	shown := kind
	if kind == ConflictBinary {
		shown, message = ConflictContent,
			"Merge conflict in "+text.Printable(s.Path())+" (binary files cannot be merged)"
	}
	s.Conflict = &Conflict{Path: s.Path(), Kind: kind, Message: "CONFLICT (" + string(shown) + "): " + message}
	s.Put, s.Remove, s.Merged, s.Bits = nil, nil, false, false
}

// inTheWay finds what is in the way of a step's file: something other than a
// folder above it, or a folder in its place that is not empty after all
// removals. Nothing is written or deleted through a link.
func (d *Decider) inTheWay(s *Step, removed map[superqode.RelPath]bool) *Conflict {
	if s.Put == nil || s.Bits {
		return nil
	}
	for dir := s.Put.Path.Parent(); dir != ""; dir = dir.Parent() {
		e := d.Now.Find(dir)
		if e == nil || e.Kind == snapshot.Dir || removed[dir] {
			continue
		}
		if e.Kind == snapshot.Link {
			s.fail(ConflictLink, text.Printable(dir)+" is a symbolic link in "+d.before(dir)+"; "+
				text.Printable(s.Path())+" is not written through it.")
		} else {
			s.fail(ConflictFolder, text.Printable(dir)+" is a file in "+d.before(dir)+", in the way of "+
				text.Printable(s.Path())+" from "+d.side()+".")
		}
		return s.Conflict
	}
	if e := d.Now.Find(s.Put.Path); e == nil || e.Kind != snapshot.Dir {
		return nil
	}
	for _, e := range d.Now.Below(s.Put.Path) {
		if e.Kind != snapshot.Dir && !removed[e.Path] {
			s.fail(ConflictFolder, "directory in the way of "+text.Printable(s.Path())+" from "+d.side()+": it holds "+
				text.Printable(e.Path)+".")
			return s.Conflict
		}
	}
	return nil
}

// fresh returns an entry to create at path, without the set-id bits, which a
// session may not bring along.
func fresh(e *snapshot.Entry, at superqode.RelPath) *snapshot.Entry {
	return &snapshot.Entry{Path: at, Kind: e.Kind, Perm: e.Perm & 0o777, Size: e.Size, Link: e.Link, ID: e.ID}
}

// alike compares as git does: contents, and the execute bit.
func alike(a, b *snapshot.Entry) bool {
	return a.SameContent(b) && (a.Kind == snapshot.Link || (a.Perm^b.Perm)&0o100 == 0)
}

// FolderMoves returns the renamed folders by their old names, given the renamed
// files and whether a folder is left empty: those whose files mostly went to
// one other folder, as git's merge-ort decides. The new name "" is the
// workspace itself.
func FolderMoves(
	renames map[superqode.RelPath]superqode.RelPath, empty func(dir superqode.RelPath) bool,
) map[superqode.RelPath]string {
	counts := map[superqode.RelPath]map[string]int{}
	for old, fresh := range renames {
		for from, to := old.Parent(), fresh.Parent(); from != "" && from != to; from, to = from.Parent(), to.Parent() {
			if counts[from] == nil {
				counts[from] = map[string]int{}
			}
			counts[from][string(to)]++
			if to == "" || from.Name() != to.Name() {
				break // the folders above have different names, too, or none
			}
		}
	}
	moves := map[superqode.RelPath]string{}
	for from, to := range counts {
		best, most, alike := "", 0, false
		for dir, n := range to {
			switch {
			case n > most:
				best, most, alike = dir, n, false
			case n == most:
				alike = true
			}
		}
		if !alike && empty(from) {
			moves[from] = best
		}
	}
	return moves
}

// Along returns where a path goes with the renamed folders: with the nearest
// one above it.
func Along(moves map[superqode.RelPath]string, p superqode.RelPath) (to superqode.RelPath, ok bool) {
	for dir := p.Parent(); dir != ""; dir = dir.Parent() {
		if fresh, moved := moves[dir]; moved {
			return superqode.RelPath(strings.TrimPrefix(path.Join(fresh, string(p[len(dir):])), "/")), true
		}
	}
	return "", false
}
