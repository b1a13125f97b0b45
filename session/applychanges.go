package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/snapshot"
)

// patchEnds are what a session's patch lies between.
type patchEnds struct {
	base, final string             // commits, or refs, of the store; "" when nothing changed
	changes     []superqode.Change // all of it, with the real permission bits
	left        []string           // what is no part of the patch
}

// ends finds what a session's patch lies between: as the workspace is now or, of
// a session that has ended, as it was in the end.
func (s *Session) ends(ctx context.Context) (e patchEnds, err error) {
	if s.rec.State == superqode.StateDone {
		return s.storedEnds(ctx)
	}
	l, err := s.look(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, l.close(string(s.rec.Workspace))) }()
	if l.gone != "" {
		return e, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s: there is nothing to apply, and taking that for the wish to delete every file would be wrong", l.gone), "superqode workspace info --session %s", s.rec.ID)
	}
	for _, p := range l.problems {
		e.left = append(e.left, visible(p.Path)+" could not be read: "+p.Err.Error())
	}
	e.changes = l.changes
	if len(l.changes) == 0 {
		return e, nil
	}
	e.base, e.final, err = s.storeEnds(ctx, l)
	return e, err
}

// storedEnds are the ends that were stored when the session was collected.
func (s *Session) storedEnds(ctx context.Context) (e patchEnds, err error) {
	e.changes, err = s.readChanges()
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return e, err
	}
	if !s.rec.HasFinal {
		return e, nil
	}
	e.base, e.final = s.ref("base"), s.ref("final")
	return e, s.openStore(ctx)
}

// pairs returns the changes of a patch that lie in paths, with real permission
// bits, and adds to e.left what git's trees could not hold.
func (s *Session) pairs(ctx context.Context, e *patchEnds, paths []string) ([]applyChange, error) {
	var list []applyChange
	told := map[string]bool{}
	if e.base != "" {
		found, err := s.store.DiffTree(ctx, snapshot.DiffOptions{Base: e.base, Final: e.final, Paths: paths})
		if err != nil {
			return nil, err
		}
		bits := bitsOf(e.changes)
		for _, p := range found {
			c := applyChange{old: p.Old, new: p.New, added: p.Added, removed: p.Removed, binary: p.Binary}
			for side, entry := range []*snapshot.Entry{c.old, c.new} {
				if entry == nil {
					continue
				}
				told[entry.Path] = true
				if m, ok := bits[side][entry.Path]; ok && entry.Kind == snapshot.File {
					entry.Perm = m & 0o7777
				}
			}
			list = append(list, c)
		}
	}
	return s.addUnseen(e, list, told, paths), nil
}

// bitsOf returns the modes of the changed paths before and after.
func bitsOf(changes []superqode.Change) (bits [2]map[string]uint32) {
	bits = [2]map[string]uint32{{}, {}}
	for _, c := range changes {
		before := c.Path.String()
		if !c.OldPath.IsZero() {
			before = c.OldPath.String()
		}
		if c.OldMode != 0 {
			bits[0][before] = c.OldMode
		}
		if c.NewMode != 0 {
			bits[1][c.Path.String()] = c.NewMode
		}
	}
	return bits
}

// addUnseen adds what git's trees do not show: permission bits other than the
// owner's x. What they can not hold at all is named in e.left.
func (s *Session) addUnseen(e *patchEnds, list []applyChange, told map[string]bool, paths []string) []applyChange {
	for _, c := range e.changes {
		path := c.Path.String()
		if told[path] || told[c.OldPath.String()] || !inPaths(path, paths) {
			continue
		}
		const format = 0o170000 // S_IFMT
		if c.Type == superqode.ChangeMode && c.OldMode&format == 0o100000 && c.NewMode&format == 0o100000 {
			list = append(list, applyChange{
				old: &snapshot.Entry{Path: path, Kind: snapshot.File, Perm: c.OldMode & 0o7777},
				new: &snapshot.Entry{Path: path, Kind: snapshot.File, Perm: c.NewMode & 0o7777},
			})
			continue
		}
		e.left = append(e.left, visible(path)+" is nothing that a patch can hold")
	}
	return list
}

// inPaths reports whether a path is one of paths or lies below one; none means
// all.
func inPaths(path string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

// checkPaths refuses a path that no change lies in.
func (s *Session) checkPaths(list []applyChange, paths []string) error {
	for _, p := range paths {
		one := []string{p}
		if !slices.ContainsFunc(list, func(c applyChange) bool {
			return c.new != nil && inPaths(c.new.Path, one) || c.old != nil && inPaths(c.old.Path, one)
		}) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s did not change %s", s.rec.ID, visible(p)), "superqode workspace changes --session %s", s.rec.ID)
		}
	}
	return nil
}

// onlyHunks keeps of the changes what the chosen hunks hold. The changes are in
// the order of the patch; those that it does not show are dropped.
func (s *Session) onlyHunks(ctx context.Context, e *patchEnds, b *bench, paths []string, ranges []HunkRange) ([]applyChange, error) {
	if e.base == "" {
		_, err := selectHunks(ranges, 0)
		return nil, err
	}
	do := snapshot.DiffOptions{Base: e.base, Final: e.final, Paths: paths}
	var patch bytes.Buffer
	if err := s.store.Diff(ctx, do, &patch); err != nil {
		return nil, err
	}
	files, err := splitPatch(&patch)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range files {
		total += files[i].count()
	}
	sel, err := selectHunks(ranges, total)
	if err != nil {
		return nil, err
	}
	shown := *e
	shown.changes = slices.DeleteFunc(slices.Clone(e.changes), func(c superqode.Change) bool {
		return c.Type == superqode.ChangeMode && (c.OldMode^c.NewMode)&0o100 == 0
	})
	list, err := s.pairs(ctx, &shown, paths)
	if err != nil {
		return nil, err
	}
	e.left = nil // nobody asked for what has no number
	return b.chooseHunks(ctx, list, files, sel)
}

var errNotThePatch = errors.New("the patch and the list of its files do not go together")

// chooseHunks goes through the patch's files and the changes side by side. A path
// that turned from file to link, or back, is two files of a patch.
func (b *bench) chooseHunks(ctx context.Context, list []applyChange, files []section, sel selection) ([]applyChange, error) {
	var out []applyChange
	number := 1
	take := func(c *applyChange) (*section, []int, error) {
		if len(files) == 0 || !files[0].isOf(c) {
			return nil, nil, errNotThePatch
		}
		f := &files[0]
		chosen := sel.chosen(f, number)
		number += f.count()
		files = files[1:]
		return f, chosen, nil
	}
	for _, c := range list {
		f, chosen, err := take(&c)
		if err != nil {
			return nil, err
		}
		if c.old != nil && c.new != nil && c.old.Kind != c.new.Kind {
			_, made, err := take(&c)
			if err != nil {
				return nil, err
			}
			switch {
			case len(made) > 0:
				out = append(out, c)
			case len(chosen) > 0:
				c.new = nil
				out = append(out, c)
			}
			continue
		}
		if len(chosen) == 0 {
			continue
		}
		if len(chosen) < f.count() {
			if err := b.partly(ctx, &c, f, chosen); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	if len(files) > 0 {
		return nil, errNotThePatch
	}
	return out, nil
}

// partly makes a change of some of its hunks. The name and the mode come along
// with any of them.
func (b *bench) partly(ctx context.Context, c *applyChange, f *section, chosen []int) error {
	if c.old == nil || c.new == nil || c.old.Kind != snapshot.File {
		return errNotThePatch // a file that is made or deleted, or a link, has one hunk
	}
	if err := b.fetch("base", c.old.ID); err != nil {
		return err
	}
	base, err := os.Open(b.path("base"))
	if err != nil {
		return err
	}
	defer base.Close()
	name := b.fresh("hunks-")
	out, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.added, c.removed, err = patchFile(out, base, f, chosen)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	made, err := b.result(name)
	if err != nil {
		return err
	}
	part := *c.new
	part.ID, part.Size = made.ID, made.Size
	c.new = &part
	return ctx.Err()
}
