package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// agentWork is what one agent did in its own workspace.
type agentWork struct {
	agent   superqode.AgentID
	child   *Authorship        // nil: it never had a workspace, or that is gone with its session
	final   *snapshot.Snapshot // nil: it changed nothing
	base    string             // the commit that it is compared with: the session's base with what the agent's setup made
	commit  string             // of final in the store; "" when it changed nothing that git can hold
	list    []superqode.Change // with line counts, sorted by path
	changes []merge.Change     // the same as the merge takes them
	large   []merge.Change     // files that are too big for the store, which are taken or left whole
	left    []string           // what no patch can hold
	notes   []string           // what the reader should know
	gone    string             // why its workspace can not be looked at
}

// lookTries is how often a workspace is looked at whose program writes to it
// meanwhile.
const lookTries = 5

// works looks at every agent's workspace, in the order given.
func (s *Authorship) works(ctx context.Context) ([]*agentWork, error) {
	kids, err := s.children()
	if err != nil {
		return nil, err
	}
	list := make([]*agentWork, 0, len(s.Rec.Agents))
	for _, a := range s.Rec.Agents {
		w := &agentWork{agent: a.Agent}
		if l, ok := kids[a.Agent]; ok && l.State != superqode.StateCreated {
			w.child = s.child(l)
			for try := 1; ; try++ {
				err = w.look(ctx)
				var moved *store.ChangedError
				if !errors.As(err, &moved) || try == lookTries {
					break
				}
				time.Sleep(20 * time.Millisecond) // its program is writing just now
			}
			if err != nil {
				return nil, fmt.Errorf("agent %s: %w", a.Agent, err)
			}
		}
		list = append(list, w)
	}
	return list, nil
}

// child is the session of an agent's own workspace, without any lock.
func (s *Authorship) child(l state.Listed) *Authorship {
	c := &Authorship{Site: s.Host.For(l.Agent).At(l)}
	c.Store, c.Distrusted = s.Store, s.Distrusted
	return c
}

// look finds out what the agent changed, and stores it.
func (w *agentWork) look(ctx context.Context) (err error) {
	c := w.child
	c.Base = nil
	l, err := c.look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(string(c.Rec.Workspace))) }()
	*w = agentWork{agent: w.agent, child: c, gone: l.Gone}
	if l.Gone != "" { // one that cannot be seen is no wish to delete every file of the others
		w.notes = append(w.notes, l.Gone+": nothing of what it did there is in the session's patch")
		return nil
	}
	for _, p := range l.Problems {
		w.notes = append(w.notes, text.Printable(p.Path)+" could not be read at the end: "+p.Err.Error())
	}
	if l.Ignored > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d new paths that git ignores are in no patch", l.Ignored))
	}
	w.final = l.Final
	if err := c.describe(ctx, l); err != nil || len(l.Changes) == 0 {
		return err
	}
	w.list = l.Changes
	e := merge.Ends{Changes: l.Changes}
	if e.Base, e.Final, err = mode.StoreEnds(ctx, c.Site, l); err != nil {
		return err
	}
	w.base, w.commit = e.Base, e.Final
	_, big := l.TakeLarge(l.Changes)
	e.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(x superqode.Change) bool {
		return slices.ContainsFunc(big, func(b superqode.Change) bool { return b.Path == x.Path })
	})
	for _, x := range big {
		w.large = append(w.large, largeChange(l, x))
	}
	if w.changes, err = e.Pairs(ctx, c.Store, nil); err != nil {
		return err
	}
	w.left = e.Left
	return nil
}

// largeChange is the change of a large file; a rename counts as one that is
// deleted and one that is made.
func largeChange(l *mode.Look, c superqode.Change) merge.Change {
	old := c.OldPath
	if old.IsZero() {
		old = c.Path
	}
	return merge.Change{Old: l.Base.Find(old.String()), New: l.Final.Find(c.Path.String()), Binary: true}
}

// lookAgents is look for a session whose agents' changes are not merged yet: the
// workspace as it would be if they were merged now. Nothing is written there.
func (s *Authorship) lookAgents(ctx context.Context) (*mode.Look, error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, mode.UnreadBase(s.Site, err)
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	works, err := s.works(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.merge(ctx, base, works)
	if err != nil {
		return nil, err
	}
	defer m.close()
	l := &mode.Look{Base: base, Final: m.now, Stored: true}
	l.Changes = snapshot.Compare(base, m.now, snapshot.CompareOptions{Renames: true})
	if err := m.commit(ctx); err != nil {
		return nil, err
	}
	s.seenWorks = works
	s.credits, err = m.credits(ctx)
	return l, err
}

// evidencePath is where a file that tells of a conflict is kept.
func evidencePath(id superqode.SessionID, agent superqode.AgentID, path string) string {
	return filepath.Join("evidence", id.String(), "conflicts", agent.String(), path+".conflict")
}

// children returns the sessions of the agents' own workspaces that there are, by
// agent. They are found by their records, not by the parent's: a crash may have
// come between the two.
func (s *Authorship) children() (map[superqode.AgentID]state.Listed, error) {
	names, err := s.Project.SessionNames()
	if err != nil {
		return nil, err
	}
	list := map[superqode.AgentID]state.Listed{}
	for _, id := range names {
		if l, err := state.Load(s.Project.SessionPath(id)); err == nil && l.Parent == s.Rec.ID {
			list[l.Agent] = l
		}
	}
	return list, nil
}

// team reports whether several agents work in the session, each in a workspace
// of its own, whose changes are not merged yet.
func (s *Authorship) team() bool {
	return len(s.Rec.Agents) > 0 && !s.Rec.Shared && !s.Rec.Merged
}
