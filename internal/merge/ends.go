package merge

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Ends are the two states of a session's patch.
type Ends struct {
	Base, Final string             // commits, or refs, of the store; "" when nothing changed
	Changes     []superqode.Change // all of it, with the real permission bits
	Left        []string           // what is not part of the patch
}

// Pairs returns the changes of a patch in paths, with real permission bits, and
// adds to e.left what git's trees could not hold.
func (e *Ends) Pairs(ctx context.Context, st *store.Store, paths []string) ([]Change, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var list []Change
	told := map[superqode.RelPath]bool{}
	if e.Base != "" {
		found, err := st.DiffTree(ctx, store.DiffOptions{Base: e.Base, Final: e.Final, Paths: paths})
		if err != nil {
			return nil, err
		}
		bits := bitsOf(e.Changes)
		for _, p := range found {
			c := Change{Old: p.Old, New: p.New, Added: p.Added, Removed: p.Removed, Binary: p.Binary}
			for side, entry := range []*snapshot.Entry{c.Old, c.New} {
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
	return e.addUnseen(list, told, paths), nil
}

// bitsOf returns the modes of the changed paths before and after.
func bitsOf(changes []superqode.Change) (bits [2]map[superqode.RelPath]uint32) {
	bits = [2]map[superqode.RelPath]uint32{{}, {}}
	for _, c := range changes {
		if c.OldMode != 0 {
			bits[0][cmp.Or(c.OldPath, c.Path)] = c.OldMode
		}
		if c.NewMode != 0 {
			bits[1][c.Path] = c.NewMode
		}
	}
	return bits
}

// addUnseen adds what git's trees do not show: permission bits other than the
// owner's x. It names in e.left what they cannot hold at all.
func (e *Ends) addUnseen(list []Change, told map[superqode.RelPath]bool, paths []string) []Change {
	for _, c := range e.Changes {
		path := c.Path
		if told[path] || told[c.OldPath] || !InPaths(path, paths) {
			continue
		}
		const format = 0o170000 // S_IFMT
		if c.Type == superqode.ChangeMode && c.OldMode&format == 0o100000 && c.NewMode&format == 0o100000 {
			list = append(list, Change{
				Old: &snapshot.Entry{Path: path, Kind: snapshot.File, Perm: c.OldMode & 0o7777},
				New: &snapshot.Entry{Path: path, Kind: snapshot.File, Perm: c.NewMode & 0o7777},
			})
			continue
		}
		e.Left = append(e.Left, text.Printable(path)+" cannot be part of a patch")
	}
	return list
}

// InPaths reports whether a path is one of paths or is below one; none means
// all.
func InPaths(path superqode.RelPath, paths []string) bool {
	in := func(p string) bool { return superqode.Within(path, superqode.RelPath(p)) }
	return len(paths) == 0 || slices.ContainsFunc(paths, in)
}

// WithoutOwn leaves superqode's own folder alone; a rename out of it, or into it,
// is half a change.
func (e *Ends) WithoutOwn(list []Change) []Change {
	out := list[:0]
	for _, c := range list {
		for _, side := range []**snapshot.Entry{&c.Old, &c.New} {
			if *side == nil {
				continue
			}
			if top, _, _ := strings.Cut(string((*side).Path), "/"); strings.EqualFold(top, ".superqode") {
				e.Left = append(e.Left, text.Printable((*side).Path)+" lies in superqode's own folder")
				*side = nil
			}
		}
		if c.Old != nil || c.New != nil {
			out = append(out, c)
		}
	}
	return out
}
