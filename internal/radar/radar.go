// Package radar looks at the open sessions of an origin and says which changes
// would conflict if all of them were applied.
package radar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
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
	roots := [2]string{a.look.Final.Root, b.look.Final.Root}
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
			list = append(list, Conflict{
				A: a.Side, B: b.Side, Path: c.Path, Kind: c.Kind, Lines: lines[steps[i].Path()], Message: c.Message,
			})
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

// A listing of sessions looks into their workspaces itself as long as nobody
// notices that; beyond these limits it tells what the radar of running agents, or
// `workspace conflicts`, saw last.
const (
	listedSides = 12
	listedFiles = 5000 // of all workspaces together
)

// ListedConflicts returns what would conflict among the given sessions of the
// origin around dir, and whether that was found out just now. look asks for a
// look whatever it costs.
func Listed(
	ctx context.Context, m *site.Host, dir string, list []state.Listed, look bool,
) (conflicts []Conflict, fresh bool, err error) {
	open, files := 0, 0
	for i := range list {
		l := &list[i]
		if l.State != superqode.StateActive && l.State != superqode.StatePreserved {
			continue
		}
		n := 1
		if len(l.Agents) > 0 && !l.Shared && !l.Merged {
			n = len(l.Agents)
		}
		open, files = open+n, files+n*l.Base.Files
	}
	switch {
	case open < 2:
		return nil, true, nil
	case look || open <= listedSides && files <= listedFiles:
		conflicts, err = Look(ctx, m, dir)
		return conflicts, true, err
	}
	p, err := registry.Locate(ctx, m, dir)
	if err != nil {
		return nil, false, err
	}
	conflicts, err = read(p)
	return stillOpen(conflicts, list), false, err
}

// stillOpen leaves out what concerns a session that has ended since.
func stillOpen(conflicts []Conflict, list []state.Listed) []Conflict {
	open := map[superqode.SessionID]bool{}
	for i := range list {
		open[list[i].ID] = list[i].State != superqode.StateDone
	}
	var out []Conflict
	for _, c := range conflicts {
		if open[c.A.Session] && open[c.B.Session] {
			out = append(out, c)
		}
	}
	return out
}

// ConflictsOf returns those of the conflicts that a session, or an agent in it,
// takes part in; never nil.
func ConflictsOf(list []Conflict, id superqode.SessionID) []Conflict {
	out := []Conflict{}
	for _, c := range list {
		if c.A.Session == id || c.B.Session == id {
			out = append(out, c)
		}
	}
	return out
}

// MarshalJSON writes paths as every document of superqode's does.
func (c Conflict) MarshalJSON() ([]byte, error) {
	j := radarJSON{A: c.A, B: c.B, Kind: c.Kind, Lines: c.Lines, Message: c.Message}
	j.Path, j.PathBytes = superqode.JSONPath(c.Path.String())
	if j.Lines == nil {
		j.Lines = []merge.LineRange{}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Conflict) UnmarshalJSON(b []byte) error {
	var j radarJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Conflict{A: j.A, B: j.B, Kind: j.Kind, Lines: j.Lines, Message: j.Message}
	var err error
	c.Path, err = superqode.PathFromJSON(j.Path, j.PathBytes)
	return err
}

type radarJSON struct {
	A         Side               `json:"a"`
	B         Side               `json:"b"`
	Path      string             `json:"path"`
	PathBytes string             `json:"path_bytes,omitempty"`
	Kind      merge.ConflictKind `json:"kind"`
	Lines     []merge.LineRange  `json:"lines"` // of the base
	Message   string             `json:"message"`
}

// radarFile is a project's radar.json: what the radar saw when it last looked.
type radarFile struct {
	SchemaVersion int        `json:"schema_version"`
	At            time.Time  `json:"at"`
	Conflicts     []Conflict `json:"conflicts"`
}

func radarPath(p state.Project) string { return filepath.Join(p.Dir, "radar.json") }

// write keeps what was seen, for who has no time to look. A file that says
// the same is left alone, but for one that is empty.
func write(p state.Project, at time.Time, list []Conflict) error {
	if list == nil {
		list = []Conflict{}
	}
	if len(list) == 0 && !atomicfile.Exists(radarPath(p)) {
		return nil
	}
	return atomicfile.WriteJSON(radarPath(p), radarFile{state.SchemaVersion, at.UTC(), list})
}

// read returns what was seen last. A file that cannot be understood counts
// as none: it is a convenience, and the next look writes it anew.
func read(p state.Project) ([]Conflict, error) {
	data, err := atomicfile.Read(radarPath(p))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f radarFile
	if json.Unmarshal(data, &f) != nil {
		return nil, nil
	}
	return f.Conflicts, nil
}
