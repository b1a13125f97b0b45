package attribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// AgentWork is what one agent did in its own workspace.
type AgentWork struct {
	Agent superqode.AgentID
	Child *Authorship        // nil: it never had a workspace, or that is gone with its session
	Final *snapshot.Snapshot // nil: it changed nothing
	// the commit that it is compared with: the session's base with what the agent's setup made
	Base    string
	Commit  string             // of final in the store; "" when it changed nothing that git can hold
	List    []superqode.Change // with line counts, sorted by path
	changes []merge.Change     // the same as the merge takes them
	Large   []merge.Change     // files that are too big for the store, which are taken or left whole
	Left    []string           // what no patch can hold
	Notes   []string           // what the reader should know
	Gone    string             // why its workspace cannot be looked at
}

// lookTries is how often a workspace is looked at whose program writes to it
// meanwhile.
const lookTries = 5

// Works looks at every agent's workspace, in the order given.
func (s *Authorship) Works(ctx context.Context) ([]*AgentWork, error) {
	kids, err := s.Children()
	if err != nil {
		return nil, err
	}
	list := make([]*AgentWork, 0, len(s.Rec.Agents))
	for _, a := range s.Rec.Agents {
		w := &AgentWork{Agent: a.Agent}
		if l, ok := kids[a.Agent]; ok && l.State != superqode.StateCreated {
			w.Child = s.Child(l)
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

// Child is the session of an agent's own workspace, without any lock.
func (s *Authorship) Child(l state.Listed) *Authorship {
	c := &Authorship{Site: s.Host.For(l.Agent).At(l)}
	c.Store, c.Distrusted = s.Store, s.Distrusted
	return c
}

// look finds out what the agent changed, and stores it.
func (w *AgentWork) look(ctx context.Context) (err error) {
	c := w.Child
	c.Base = nil
	l, err := c.Look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	*w = AgentWork{Agent: w.Agent, Child: c, Gone: l.Gone}
	if l.Gone != "" { // one that cannot be seen is no wish to delete every file of the others
		w.Notes = append(w.Notes, l.Gone+": nothing of what it did there is in the session's patch")
		return nil
	}
	for _, p := range l.Problems {
		w.Notes = append(w.Notes, text.Printable(p.Path)+" could not be read at the end: "+p.Err.Error())
	}
	if l.Ignored > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d new paths that git ignores are in no patch", l.Ignored))
	}
	w.Final = l.Final
	if err := c.Describe(ctx, l); err != nil || len(l.Changes) == 0 {
		return err
	}
	w.List = l.Changes
	var e merge.Ends
	if e.Base, e.Final, err = mode.StoreEnds(ctx, c.Site, l); err != nil {
		return err
	}
	w.Base, w.Commit = e.Base, e.Final
	var large []superqode.Change
	e.Changes, large = l.TakeLarge()
	for _, x := range large {
		w.Large = append(w.Large, largeChange(l, x))
	}
	if w.changes, err = e.Pairs(ctx, c.Store, nil); err != nil {
		return err
	}
	w.Left = e.Left
	return nil
}

// largeChange is the change of a large file; a rename counts as one that is
// deleted and one that is made.
func largeChange(l *mode.Look, c superqode.Change) merge.Change {
	return merge.Change{Old: l.Base.Find(cmp.Or(c.OldPath, c.Path)), New: l.Final.Find(c.Path), Binary: true}
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
	works, err := s.Works(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.Merge(ctx, base, works)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	l := &mode.Look{Base: base, Final: m.Now, Commits: [2]string{s.Ref("base"), s.mergedRef(len(works) - 1)}}
	l.Compare()
	if err := m.Commit(ctx); err != nil {
		return nil, err
	}
	s.SeenWorks = works
	s.Credits, err = m.Credits(ctx)
	return l, err
}

// EvidencePath is where a file that tells of a conflict is kept.
func EvidencePath(id superqode.SessionID, agent superqode.AgentID, path string) string {
	return filepath.Join("evidence", id.String(), "conflicts", agent.String(), path+".conflict")
}

// Children returns the sessions of the agents' own workspaces that there are, by
// agent. They are found by their records, not by the parent's: a crash may have
// come between the two.
func (s *Authorship) Children() (map[superqode.AgentID]state.Listed, error) {
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

// Team reports whether several agents work in the session, each in a workspace
// of its own, whose changes are not merged yet.
func (s *Authorship) Team() bool {
	return len(s.Rec.Agents) > 0 && !s.Rec.Shared && !s.Rec.Merged
}
