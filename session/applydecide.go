package session

import (
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/snapshot"
)

// This file decides what becomes of each of a session's changes in the origin,
// and touches nothing. The rules are those of git's three-way merge with the
// base in the middle, the origin as "ours" and the session as "theirs":
//
//   - what only one side changed, that side wins; what both changed alike is done
//   - two texts are merged line by line; permission bits are merged bit by bit
//   - links and binary files are whole: two different changes are a conflict
//   - an edit follows a rename by the session; an edit against a deletion is a
//     conflict
//   - anything in the way that the session did not know is a conflict: a file, a
//     folder that would not be empty, a link or file where a folder is needed

// applyChange is one path, or one rename, of a session's patch. The entries have
// the real permission bits. old or new is nil where the path was not there.
type applyChange struct {
	old, new       *snapshot.Entry
	added, removed int // lines; 0 for binary contents
	binary         bool
}

// path is where the change is told of.
func (c *applyChange) path() string {
	if c.new != nil {
		return c.new.Path
	}
	return c.old.Path
}

// renamed reports whether the change has two paths.
func (c *applyChange) renamed() bool {
	return c.old != nil && c.new != nil && c.old.Path != c.new.Path
}

// applyStep is what one change comes to.
type applyStep struct {
	applyChange
	conflict *Conflict
	put      *snapshot.Entry // has to stand at its path in the end; nil: nothing to be made
	bits     bool            // only put's permission bits are to be set
	remove   *snapshot.Entry // as it is in the origin; nil: nothing to be deleted
	merged   bool            // put's contents are neither side's
}

// done reports whether the origin has the change already.
func (s *applyStep) done() bool { return s.conflict == nil && s.put == nil && s.remove == nil }

// ConflictKind says what two sides disagree on, in git's words.
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
	ConflictClaim        ConflictKind = "claim" // of several agents: another one had the place to itself
)

// Conflict is one path that can not be brought into the origin.
type Conflict struct {
	Path    string
	Kind    ConflictKind
	Message string // a line as git prints it: "CONFLICT (content): Merge conflict in a.go"
}

// The sides' names in messages.
const sideOrigin, sideSession = "origin", "session"

// merger merges two texts that both differ from base. ok is false when they
// conflict, and then binary says that they were no texts.
type merger func(base, ours, theirs *snapshot.Entry) (merged snapshot.Entry, ok, binary bool, err error)

// decider decides against the origin as it was found.
type decider struct {
	now   *snapshot.Snapshot // every path of the changes, with the folders above and everything below
	merge merger
	// similar reports whether a file of the origin is what became of base, as git
	// decides on renames: when half of it is the same.
	similar func(base, now *snapshot.Entry) (bool, error)

	ours   func(path string) string // who changed a path before; nil: the origin
	theirs string                   // whose changes these are; "": the session
	moved  map[string]string        // where files of the base are by now, if somebody is known to have renamed them
}

// before names who changed a path before.
func (d *decider) before(path string) string {
	if d.ours == nil {
		return sideOrigin
	}
	return d.ours(path)
}

// side names whose changes are decided about.
func (d *decider) side() string {
	if d.theirs == "" {
		return sideSession
	}
	return d.theirs
}

// decide returns a step for each change, in their order.
func (d *decider) decide(changes []applyChange) ([]applyStep, error) {
	steps := make([]applyStep, len(changes))
	removed := map[string]bool{}
	for i, c := range changes {
		var err error
		if steps[i], err = d.one(c); err != nil {
			return nil, err
		}
		if e := steps[i].remove; e != nil {
			removed[e.Path] = true
		}
	}
	for i := range steps {
		if s := &steps[i]; s.conflict == nil {
			s.conflict = d.inTheWay(s, removed)
		}
	}
	return steps, nil
}

func (d *decider) one(c applyChange) (s applyStep, err error) {
	s.applyChange = c
	switch {
	case c.old == nil:
		d.create(&s)
	case c.new == nil:
		d.delete(&s)
	case c.renamed():
		err = d.rename(&s)
	default:
		err = d.modify(&s)
	}
	return s, err
}

func (d *decider) create(s *applyStep) {
	now := d.now.Find(s.new.Path)
	switch {
	case now == nil, now.Kind == snapshot.Dir:
		s.put = fresh(s.new, s.new.Path)
	case !alike(now, s.new):
		s.fail(ConflictAddAdd, "Merge conflict in "+visible(s.new.Path))
	}
}

func (d *decider) delete(s *applyStep) {
	now := d.now.Find(d.at(s.old.Path))
	switch {
	case now != nil && now.Path != s.old.Path:
		s.fail(ConflictRenameDelete, visible(s.old.Path)+" renamed to "+visible(now.Path)+" in "+d.before(now.Path)+", but deleted in "+d.side()+".")
	case now == nil, now.Kind == snapshot.Dir: // whatever is there, the file is not
	case alike(now, s.old):
		s.remove = now
	default:
		s.fail(ConflictModifyDelete, visible(s.old.Path)+" deleted in "+d.side()+" and modified in "+d.before(s.old.Path)+".")
	}
}

func (d *decider) modify(s *applyStep) error {
	now := d.now.Find(d.at(s.new.Path))
	if now == nil {
		s.fail(ConflictModifyDelete, visible(s.new.Path)+" deleted in "+d.before(s.new.Path)+" and modified in "+d.side()+".")
		return nil
	}
	want, err := d.threeWay(s, now)
	if err != nil || s.conflict != nil {
		return err
	}
	s.replace(now, want)
	return nil
}

// at returns where a file of the base is by now.
func (d *decider) at(path string) string {
	if to, ok := d.moved[path]; ok {
		return to
	}
	return path
}

// replace plans to turn what is there into what is wanted.
func (s *applyStep) replace(now *snapshot.Entry, want snapshot.Entry) {
	want.Path = now.Path
	switch {
	case sameData(now, &want) && (now.Perm == want.Perm || now.Kind == snapshot.Link):
		s.merged = false
	case sameData(now, &want):
		s.put, s.bits, s.merged = &want, true, false
	default:
		s.put = &want
	}
}

func (d *decider) rename(s *applyStep) error {
	from, to := d.now.Find(s.old.Path), d.now.Find(s.new.Path)
	if from == nil || from.Kind == snapshot.Dir {
		return d.renameGone(s, to)
	}
	want, err := d.threeWay(s, from)
	if err != nil || s.conflict != nil {
		return err
	}
	switch {
	case to == nil, to.Kind == snapshot.Dir:
		s.put = fresh(&want, s.new.Path)
	case !alike(to, &want):
		s.fail(ConflictRenameAdd, "Rename "+visible(s.old.Path)+"->"+visible(s.new.Path)+" in "+d.side()+".  Added "+visible(s.new.Path)+" in "+d.before(s.new.Path))
		return nil
	}
	s.remove = from
	return nil
}

// renameGone is for a rename of a file that the origin does not have any more:
// because it was renamed there, too, or because it was deleted.
func (d *decider) renameGone(s *applyStep, to *snapshot.Entry) error {
	if to != nil && alike(to, s.new) {
		return nil
	}
	if to != nil && to.Kind == s.old.Kind {
		renamed := sameData(to, s.old)
		if !renamed && to.Kind == snapshot.File {
			var err error
			if renamed, err = d.similar(s.old, to); err != nil {
				return err
			}
		}
		if renamed {
			want, err := d.threeWay(s, to)
			if err == nil && s.conflict == nil {
				s.replace(to, want)
			}
			return err
		}
	}
	if at := d.at(s.old.Path); at != s.old.Path {
		s.fail(ConflictRenameRename, visible(s.old.Path)+" renamed to "+visible(at)+" in "+d.before(at)+" and to "+visible(s.new.Path)+" in "+d.side()+".")
		return nil
	}
	s.fail(ConflictRenameDelete, visible(s.old.Path)+" renamed to "+visible(s.new.Path)+" in "+d.side()+", but deleted in "+d.before(s.old.Path)+".")
	return nil
}

// threeWay merges what the session did from old to new with what is there now.
// The result has now's path. A conflict is noted in s.
func (d *decider) threeWay(s *applyStep, now *snapshot.Entry) (snapshot.Entry, error) {
	want := *now
	if now.Kind != s.old.Kind || s.new.Kind != s.old.Kind {
		switch {
		case alike(now, s.old):
			want = *fresh(s.new, now.Path)
		case !alike(now, s.new):
			s.fail(ConflictTypes, visible(s.new.Path)+" had different types on each side.")
		}
		return want, nil
	}
	if now.Kind == snapshot.File {
		changed := (s.old.Perm ^ s.new.Perm) & 0o777
		want.Perm = now.Perm&^changed | s.new.Perm&changed
	}
	switch {
	case sameData(s.old, s.new), sameData(now, s.new):
	case sameData(now, s.old):
		want.ID, want.Size, want.Link = s.new.ID, s.new.Size, s.new.Link
	case now.Kind == snapshot.Link:
		s.fail(ConflictContent, "Merge conflict in "+visible(s.new.Path))
	default:
		merged, ok, binary, err := d.merge(s.old, now, s.new)
		switch {
		case err != nil:
			return want, err
		case binary:
			s.fail(ConflictBinary, "")
		case !ok:
			s.fail(ConflictContent, "Merge conflict in "+visible(s.new.Path))
		default:
			want.ID, want.Size, s.merged = merged.ID, merged.Size, merged.ID != s.new.ID
		}
	}
	return want, nil
}

// fail notes a conflict. git prints one of two binary files as one of contents,
// after a warning.
func (s *applyStep) fail(kind ConflictKind, text string) {
	shown := kind
	if kind == ConflictBinary {
		shown, text = ConflictContent, "Merge conflict in "+visible(s.path())+" (binary files can not be merged)"
	}
	s.conflict = &Conflict{Path: s.path(), Kind: kind, Message: "CONFLICT (" + string(shown) + "): " + text}
	s.put, s.remove, s.merged, s.bits = nil, nil, false, false
}

// inTheWay finds what keeps a step's file from being made: something else than a
// folder above it, or a folder in its place that is not empty when everything
// that is to be removed is. Nothing is written, or deleted, through a link.
func (d *decider) inTheWay(s *applyStep, removed map[string]bool) *Conflict {
	if s.put == nil || s.bits {
		return nil
	}
	for dir := snapshot.Parent(s.put.Path); dir != ""; dir = snapshot.Parent(dir) {
		e := d.now.Find(dir)
		if e == nil || e.Kind == snapshot.Dir || removed[dir] {
			continue
		}
		if e.Kind == snapshot.Link {
			s.fail(ConflictLink, visible(dir)+" is a symbolic link in "+d.before(dir)+"; "+visible(s.path())+" is not written through it.")
		} else {
			s.fail(ConflictFolder, visible(dir)+" is a file in "+d.before(dir)+", in the way of "+visible(s.path())+" from "+d.side()+".")
		}
		return s.conflict
	}
	if e := d.now.Find(s.put.Path); e == nil || e.Kind != snapshot.Dir {
		return nil
	}
	for _, e := range below(d.now, s.put.Path) {
		if e.Kind != snapshot.Dir && !removed[e.Path] {
			s.fail(ConflictFolder, "directory in the way of "+visible(s.path())+" from "+d.side()+": it holds "+visible(e.Path)+".")
			return s.conflict
		}
	}
	return nil
}

// below returns the entries below a folder.
func below(sn *snapshot.Snapshot, dir string) []snapshot.Entry {
	from, _ := slices.BinarySearchFunc(sn.Entries, dir+"/", func(e snapshot.Entry, p string) int { return strings.Compare(e.Path, p) })
	to := from
	for to < len(sn.Entries) && strings.HasPrefix(sn.Entries[to].Path, dir+"/") {
		to++
	}
	return sn.Entries[from:to]
}

// fresh returns an entry to be made at path. A set-id bit is nothing that a
// session may bring along.
func fresh(e *snapshot.Entry, at string) *snapshot.Entry {
	return &snapshot.Entry{Path: at, Kind: e.Kind, Perm: e.Perm & 0o777, Size: e.Size, Link: e.Link, ID: e.ID}
}

// sameData compares contents, or targets, of two files or links.
func sameData(a, b *snapshot.Entry) bool {
	if a.Kind != b.Kind {
		return false
	}
	if a.Kind == snapshot.Link {
		return a.Link == b.Link
	}
	return a.Kind == snapshot.File && a.ID == b.ID
}

// alike compares as git does: contents, and whether it may be executed.
func alike(a, b *snapshot.Entry) bool {
	return sameData(a, b) && (a.Kind == snapshot.Link || (a.Perm^b.Perm)&0o100 == 0)
}
