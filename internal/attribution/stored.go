package attribution

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// The refs of a session of several agents in the store, beside base and final:
//
//	agents/<i>   what agent i, counted from 0, left in its own workspace
//	bases/<i>    what that is compared with
//	merged/<i>   the base with the changes of the agents up to i, the child of
//	             merged/<i-1>: so git blame tells who wrote a line
//
// Their names cannot be refs' names: "a..b" is an agent's.

func (s *Authorship) agentRef(i int) string  { return s.Ref("agents/" + strconv.Itoa(i)) }
func (s *Authorship) agentBase(i int) string { return s.Ref("bases/" + strconv.Itoa(i)) }
func (s *Authorship) mergedRef(i int) string { return s.Ref("merged/" + strconv.Itoa(i)) }

// Commit stores what was merged.
func (m *TeamMerge) Commit(ctx context.Context) error {
	if err := m.B.Keep(ctx); err != nil {
		return err
	}
	s := m.s
	list := []store.CommitRequest{{
		Ref: s.Ref("base"), Snap: mode.WithoutLarge(m.base), CommitOptions: store.CommitOptions{Message: "base of session " + s.Rec.ID.String(), When: s.Rec.CreatedAt},
	}}
	for i, w := range m.Works {
		list = append(list, store.CommitRequest{
			Ref: s.mergedRef(i), Snap: mode.WithoutLarge(m.stages[i]), OnPrevious: true,
			CommitOptions: store.CommitOptions{Message: "with the changes of agent " + w.Agent.String(), When: s.Rec.CreatedAt},
		})
	}
	if _, err := s.Store.CommitAll(ctx, list); err != nil {
		return fmt.Errorf("store the merge: %w", err)
	}
	for i, w := range m.Works {
		if w.Commit == "" {
			continue
		}
		if err := s.Store.WriteRef(ctx, s.agentBase(i), w.Base); err != nil {
			return err
		}
		if err := s.Store.WriteRef(ctx, s.agentRef(i), w.Commit); err != nil {
			return err
		}
	}
	return nil
}

// fileHunks are the places where a file differs between two commits. One of the
// names is "" where the file is not there.
type fileHunks struct {
	old, fresh string
	hunks      []merge.Hunk
}

// key names the file by the base or, where it is new, by its new name.
func (f *fileHunks) key() string {
	if f.old != "" {
		return f.old
	}
	return f.fresh
}

// commitHunks compares two commits of the store line by line.
func (s *Authorship) commitHunks(ctx context.Context, base, final string) ([]fileHunks, error) {
	opt := store.DiffOptions{Base: base, Final: final}
	pairs, err := s.Store.DiffTree(ctx, opt)
	if err != nil {
		return nil, err
	}
	opt.Bare = true
	var read merge.HunkCollector
	if err := s.Store.Diff(ctx, opt, &read); err != nil {
		return nil, err
	}
	var list []fileHunks
	files := read.Files
	for _, p := range pairs {
		f := fileHunks{}
		if p.Old != nil {
			f.old = p.Old.Path
		}
		if p.New != nil {
			f.fresh = p.New.Path
		}
		n := 1
		if p.Old != nil && p.New != nil && p.Old.Kind != p.New.Kind {
			n = 2 // one that goes and one that comes
		}
		if len(files) < n {
			return nil, merge.ErrNotThePatch
		}
		f.hunks = slices.Concat(files[:n]...)
		files = files[n:]
		list = append(list, f)
	}
	return list, nil
}

// Credits says whose each change is, down to the hunks. What two agents did alike
// is the first one's.
func (m *TeamMerge) Credits(ctx context.Context) (credits, error) {
	s, out := m.s, credits{}
	if len(m.Works) == 0 {
		return out, nil
	}
	merged, err := s.commitHunks(ctx, s.Ref("base"), s.mergedRef(len(m.Works)-1))
	if err != nil {
		return nil, err
	}
	own := map[superqode.AgentID]map[string][]merge.Hunk{}
	seen := map[superqode.AgentID]map[string]time.Time{}
	for _, w := range m.Works {
		own[w.Agent], seen[w.Agent] = map[string][]merge.Hunk{}, map[string]time.Time{}
		for _, c := range w.List {
			seen[w.Agent][c.Path.String()] = c.FirstSeen
			if !c.OldPath.IsZero() {
				seen[w.Agent][c.OldPath.String()] = c.FirstSeen
			}
		}
		if w.Commit == "" {
			continue
		}
		list, err := s.commitHunks(ctx, w.Base, w.Commit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			own[w.Agent][list[i].key()] = list[i].hunks
		}
	}
	for p, who := range m.touched {
		c := credit{agents: who}
		for _, a := range who {
			c.seen = earlier(c.seen, seenAt(seen[a], p, m.origins[p], m.placed[p]))
		}
		out[p] = c
	}
	for i := range merged {
		f := &merged[i]
		at := f.fresh
		if at == "" {
			at = f.old
		}
		c := out[at]
		for _, h := range f.hunks {
			ch := superqode.ChangeHunk{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines}
			for _, a := range c.agents {
				mine := own[a][f.key()]
				if from, ok := m.placed[at]; ok && mine == nil {
					mine = own[a][from]
				}
				if slices.ContainsFunc(mine, h.Touches) {
					ch.Agent, ch.FirstSeen = a, seenAt(seen[a], at, f.old, m.placed[at])
					break
				}
			}
			c.hunks = append(c.hunks, ch)
		}
		out[at] = c
	}
	return out, nil
}

// seenAt returns when a path was first seen changed, under one name or another.
func seenAt(seen map[string]time.Time, paths ...string) (at time.Time) {
	for _, p := range paths {
		at = earlier(at, seen[p])
	}
	return at
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// stamp says in each change whose it is.
func (c credits) stamp(changes []superqode.Change) {
	for i := range changes {
		ch := &changes[i]
		cr, ok := c[ch.Path.String()]
		if !ok && !ch.OldPath.IsZero() {
			cr, ok = c[ch.OldPath.String()]
		}
		if !ok {
			continue
		}
		ch.Agent, ch.Agents = superqode.AgentID{}, nil
		if len(cr.agents) == 1 && !cr.unsure {
			ch.Agent = cr.agents[0]
		} else {
			ch.Agents = cr.agents
		}
		ch.Hunks = cr.hunks
		if !cr.seen.IsZero() {
			ch.FirstSeen = cr.seen
		}
	}
}

// credit says whose a change is.
type credit struct {
	agents []superqode.AgentID // in the order in which they did it
	seen   time.Time
	hunks  []superqode.ChangeHunk
	unsure bool // of some of it nobody is known to have done it
}

// credits says whose the changes of several agents are, by path.
type credits map[string]credit
