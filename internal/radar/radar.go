// Package radar looks at the open sessions of an origin and says which changes
// would conflict if all of them were applied.
package radar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// The radar tells of changes in open workspaces that could not be merged with each
// other as they are now: of agents in one session, and of sessions of one origin.
// It asks what the merge would ask, git merge-file on the base, and not only
// whether two have changed the same file. It writes nothing anywhere but its own
// result.

// Side is one of two whose changes meet.
type Side struct {
	Session superqode.SessionID `json:"session_id"`
	Agent   superqode.AgentID   `json:"agent_id"`
}

// Conflict is one path that two sides have changed so that their changes do
// not merge.
type Conflict struct {
	A       Side
	B       Side
	Path    superqode.RelPath
	Kind    merge.ConflictKind
	Lines   []merge.LineRange // of the base; none where it is not about lines
	Message string
}

// seen is a side as the radar sees it.
type seen struct {
	Side
	s       *attribution.Authorship
	look    *mode.Look
	changes []merge.Change
	touched map[superqode.RelPath]bool // paths, and the folders above them
}

// maxSides bounds what one look of the radar costs.
const maxSides = 64

// Look looks at every open session of the origin around dir and returns what
// would conflict; all of them when nobody ends one meanwhile.
func Look(ctx context.Context, m *site.Host, dir string) ([]Conflict, error) {
	p, err := registry.Locate(ctx, m, dir)
	if err != nil {
		return nil, err
	}
	list, _, err := In(ctx, m, p)
	return list, err
}

// In is Look for a project; it also returns how many paths each side has
// changed.
func In(ctx context.Context, m *site.Host, p state.Project) ([]Conflict, []sideCount, error) {
	sides, err := sides(ctx, m, p)
	if err != nil {
		return nil, nil, err
	}
	counts := make([]sideCount, len(sides))
	for i, a := range sides {
		counts[i] = sideCount{a.Side, len(a.look.Changes)}
	}
	var list []Conflict
	for i, a := range sides {
		for _, b := range sides[i+1:] {
			found, err := meet(ctx, a, b)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, found...)
		}
	}
	return list, counts, write(p, m.Now(), list)
}

type sideCount struct {
	Side
	Changes int
}

// sides looks at the workspaces that are open.
func sides(ctx context.Context, m *site.Host, p state.Project) ([]*seen, error) {
	names, err := p.SessionNames()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, id := range names {
		dirs = append(dirs, p.SessionPath(id))
	}
	all, _ := state.LoadAll(dirs)
	slices.SortFunc(all, func(a, b state.Listed) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	var sides []*seen
	for _, l := range all {
		open := l.State == superqode.StateActive || l.State == superqode.StatePreserved
		if !open || len(sides) == maxSides || !l.Parent.IsZero() && l.State != superqode.StateActive {
			continue // what a kept workspace of an agent holds is in its session's
		}
		s := attribution.Of(m.At(l))
		if s.Team() {
			continue // its agents are sides
		}
		side, err := side(ctx, s)
		if err != nil {
			m.Log.Debug().Stringer("session", l.ID).Err(err).Msg("radar")
			continue // its program is writing, or it is ending
		}
		sides = append(sides, side)
	}
	return sides, nil
}

// side looks at one session, and keeps when each change was first seen.
func side(ctx context.Context, s *attribution.Authorship) (*seen, error) {
	s.Gentle = true
	l, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	r := &seen{Side: Side{s.PublicID(), s.Rec.Agent}, s: s, look: l, touched: map[superqode.RelPath]bool{}}
	if l.Gone != "" {
		l.Changes = nil
	}
	for _, c := range l.Changes {
		from := c.OldPath
		if from.IsZero() {
			from = c.Path
		}
		ch := merge.Change{Old: l.Base.Find(from), New: l.Final.Find(c.Path)}
		for _, e := range []**snapshot.Entry{&ch.Old, &ch.New} {
			if *e != nil && (*e).Kind != snapshot.File && (*e).Kind != snapshot.Link {
				*e = nil
			}
		}
		if ch.Old == nil && ch.New == nil {
			continue
		}
		r.changes = append(r.changes, ch)
		for _, path := range []superqode.RelPath{from, c.Path} {
			r.touched[path] = true
		}
	}
	if !s.Rec.Parent.IsZero() && len(l.Changes) > 0 {
		err = s.StampSeen(l.Changes)
	}
	return r, err
}

// touches reports whether a side has changed something at a path, below it or
// above it.
func (r *seen) touches(path superqode.RelPath) bool {
	if r.touched[path] {
		return true
	}
	for dir := path.Parent(); dir != ""; dir = dir.Parent() {
		if r.touched[dir] {
			return true
		}
	}
	for p := range r.touched {
		if p != path && superqode.Within(p, path) {
			return true
		}
	}
	return false
}

// meet returns what would conflict if b's changes were merged with a's.
func meet(ctx context.Context, a, b *seen) ([]Conflict, error) {
	var both []merge.Change
	for _, c := range b.changes {
		if c.Old != nil && a.touches(c.Old.Path) || c.New != nil && a.touches(c.New.Path) {
			both = append(both, c)
		}
	}
	if len(both) == 0 {
		return nil, nil
	}
	if err := b.s.OpenStore(ctx); err != nil {
		return nil, err
	}
	scratch, err := b.s.OpenScratch(ctx)
	if err != nil {
		return nil, err
	}
	list, err := meetOn(ctx, scratch, a, b, both)
	return list, errors.Join(err, scratch.Close())
}

func meetOn(ctx context.Context, scratch *merge.Scratch, a, b *seen, both []merge.Change) ([]Conflict, error) {
	lines := map[superqode.RelPath][]merge.LineRange{}
	roots := [2]string{string(a.s.Rec.Workspace), string(b.s.Rec.Workspace)}
	moved := map[superqode.RelPath]superqode.RelPath{}
	for _, c := range a.changes {
		if c.Renamed() {
			moved[c.Old.Path] = c.New.Path
		}
	}
	d := &merge.Decider{
		Now: a.look.Final, Moved: moved, Ours: func(superqode.RelPath) string { return a.name() }, Theirs: b.name(),
		Similar: func(_, _ *snapshot.Entry) (bool, error) { return true, nil },
		Merge: func(base, ours, theirs *snapshot.Entry) (snapshot.Entry, bool, bool, error) {
			if base.IsLarge() || ours.IsLarge() || theirs.IsLarge() {
				return snapshot.Entry{}, false, true, nil
			}
			err := errors.Join(scratch.Fetch("base", base.ID),
				scratch.FetchFrom(roots[0], "ours", ours), scratch.FetchFrom(roots[1], "theirs", theirs))
			if err != nil {
				return snapshot.Entry{}, false, false, err
			}
			name := scratch.Fresh("merged-")
			ok, binary, err := scratch.MergeTexts(ctx, name)
			if binary || err != nil {
				return snapshot.Entry{}, false, binary, err
			}
			if !ok {
				lines[theirs.Path], err = scratch.Overlap(ctx)
			}
			return *theirs, ok, false, errors.Join(err, scratch.Drop(name))
		},
	}
	steps, err := d.Decide(both)
	if errors.Is(err, superqode.ErrConflict) {
		return nil, nil // somebody writes just now: the next look will tell
	}
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", a.name(), b.name(), err)
	}
	var list []Conflict
	for i := range steps {
		if c := steps[i].Conflict; c != nil {
			path := c.Path
			list = append(list, Conflict{A: a.Side, B: b.Side, Path: path, Kind: c.Kind, Lines: lines[steps[i].Path()], Message: c.Message})
		}
	}
	return list, nil
}

// name is the side as messages have it.
func (r Side) name() string {
	id := r.Session.String()
	short := id[strings.LastIndexByte(id, '-')+1:]
	if r.Agent.IsZero() {
		return short
	}
	return r.Agent.String()
}
