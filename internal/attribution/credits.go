package attribution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// AgentsFile is a session's agents.json: what its agents did, once that was
// merged.
type AgentsFile struct {
	SchemaVersion int           `json:"schema_version"`
	Agents        []AgentResult `json:"agents"` // in the order given
	Credits       []pathCredit  `json:"credits"`
}

// AgentResult is what one agent did.
type AgentResult struct {
	Agent     superqode.AgentID  `json:"agent_id"`
	Changes   []superqode.Change `json:"changes"`
	Conflicts []ConflictEntry    `json:"conflicts"`
	HasFinal  bool               `json:"has_final"` // refs/superqode/<id>/agents/<i> stands
	Patch     string             `json:"patch"`
	Log       string             `json:"log"`
}

// ConflictEntry is an AgentConflict as it is kept. Paths are bytes.
type ConflictEntry struct {
	Path    []byte              `json:"path"`
	Kind    merge.ConflictKind  `json:"kind"`
	Message string              `json:"message"`
	With    []superqode.AgentID `json:"with"`
	Lines   []merge.LineRange   `json:"lines"`
	File    string              `json:"file"` // below qe-artifacts, "" for none
}

type pathCredit struct {
	Path []byte `json:"path"`
	credit
}

func (s *Authorship) agentsPath() string { return filepath.Join(s.Folder, "agents.json") }

// WriteAgents keeps what the agents did and whose the changes are.
func (s *Authorship) WriteAgents(f *AgentsFile, c credits) error {
	f.SchemaVersion, f.Credits = state.SchemaVersion, []pathCredit{}
	for _, p := range slices.Sorted(maps.Keys(c)) {
		f.Credits = append(f.Credits, pathCredit{[]byte(p), c[p]})
	}
	return atomicfile.WriteJSON(s.agentsPath(), f)
}

// ReadAgents returns what the agents did; nil before it was merged.
func (s *Authorship) ReadAgents() (*AgentsFile, error) {
	data, err := atomicfile.Read(s.agentsPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &AgentsFile{}
	return f, json.Unmarshal(data, f)
}

// loadCredits reads back whose the changes are.
func (s *Authorship) loadCredits() (credits, error) {
	if s.Credits != nil || len(s.Rec.Agents) == 0 {
		return s.Credits, nil
	}
	f, err := s.ReadAgents()
	if err != nil || f == nil {
		return nil, err
	}
	c := credits{}
	for _, e := range f.Credits {
		c[superqode.RelPath(e.Path)] = e.credit
	}
	s.Credits = c
	return c, nil
}

// AgentRuns tells what each agent did, for the session's result and report.
func (s *Authorship) AgentRuns() (artifacts.AgentRuns, error) {
	if len(s.Rec.Agents) == 0 {
		return nil, nil
	}
	f, err := s.ReadAgents()
	if err != nil {
		return nil, err
	}
	kids, err := s.Children()
	if err != nil {
		return nil, err
	}
	runs := make(artifacts.AgentRuns, len(s.Rec.Agents))
	for i, a := range s.Rec.Agents {
		r := &runs[i]
		*r = artifacts.AgentRun{
			Agent: a.Agent, Command: a.Command, ExitCode: state.ExitUnknown, TimedOut: a.TimedOut,
			StartedAt:       artifacts.At(a.StartedAt),
			DurationSeconds: text.Seconds(a.EndedAt.Sub(a.StartedAt)),
			Workspace:       s.Rec.WorkspaceResult(),
		}
		if a.ExitCode != nil {
			r.ExitCode = *a.ExitCode
		}
		if !s.Rec.Shared {
			r.Workspace.Path = s.Project.WorkspacePath(a.Session.String())
		}
		if k, ok := kids[a.Agent]; ok {
			r.Workspace = artifacts.Workspace{Path: string(k.Workspace), Preserved: k.State != superqode.StateDone}
		}
		if f == nil || i >= len(f.Agents) {
			continue
		}
		r.Changes, r.Patch, r.Log = f.Agents[i].Changes, f.Agents[i].Patch, f.Agents[i].Log
		for _, c := range f.Agents[i].Conflicts {
			r.Conflicts = append(r.Conflicts, text.Printable(string(c.Path)))
		}
	}
	return runs, nil
}

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
		Ref: s.Ref("base"), Snap: mode.WithoutLarge(m.base),
		CommitOptions: store.CommitOptions{Message: "base of session " + s.Rec.ID.String(), When: s.Rec.CreatedAt},
	}}
	for i, w := range m.Works {
		list = append(list, store.CommitRequest{
			Ref: s.mergedRef(i), Snap: mode.WithoutLarge(m.stages[i]), OnPrevious: true,
			CommitOptions: store.CommitOptions{Message: "with the changes of agent " + w.Agent.String(),
				When: s.Rec.CreatedAt},
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
	old, fresh superqode.RelPath
	hunks      []merge.Hunk
}

// key names the file by the base or, where it is new, by its new name.
func (f *fileHunks) key() superqode.RelPath { return cmp.Or(f.old, f.fresh) }

// commitHunks compares two commits of the store line by line.
func commitHunks(ctx context.Context, st *store.Store, base, final string) ([]fileHunks, error) {
	opt := store.DiffOptions{Base: base, Final: final}
	pairs, err := st.DiffTree(ctx, opt)
	if err != nil {
		return nil, err
	}
	opt.Bare = true
	var read merge.HunkCollector
	if err := st.Diff(ctx, opt, &read); err != nil {
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
	merged, err := commitHunks(ctx, s.Store, s.Ref("base"), s.mergedRef(len(m.Works)-1))
	if err != nil {
		return nil, err
	}
	own := map[superqode.AgentID]map[superqode.RelPath][]merge.Hunk{}
	seen := map[superqode.AgentID]map[superqode.RelPath]time.Time{}
	for _, w := range m.Works {
		own[w.Agent], seen[w.Agent] = map[superqode.RelPath][]merge.Hunk{}, map[superqode.RelPath]time.Time{}
		for _, c := range w.List {
			seen[w.Agent][c.Path] = c.FirstSeen
			if !c.OldPath.IsZero() {
				seen[w.Agent][c.OldPath] = c.FirstSeen
			}
		}
		if w.Commit == "" {
			continue
		}
		list, err := commitHunks(ctx, s.Store, w.Base, w.Commit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			own[w.Agent][list[i].key()] = list[i].hunks
		}
	}
	for p, who := range m.touched {
		c := credit{Agents: who}
		for _, a := range who {
			c.Seen = earlier(c.Seen, seenAt(seen[a], p, m.origins[p], m.placed[p]))
		}
		out[p] = c
	}
	for i := range merged {
		f := &merged[i]
		at := cmp.Or(f.fresh, f.old)
		c := out[at]
		for _, h := range f.hunks {
			ch := changeHunk(h)
			for _, a := range c.Agents {
				mine := own[a][f.key()]
				if from, ok := m.placed[at]; ok && mine == nil {
					mine = own[a][from]
				}
				if slices.ContainsFunc(mine, h.Touches) {
					ch.Agent, ch.FirstSeen = a, seenAt(seen[a], at, f.old, m.placed[at])
					break
				}
			}
			c.Hunks = append(c.Hunks, ch)
		}
		out[at] = c
	}
	return out, nil
}

// seenAt returns when a path was first seen changed, under one name or another.
func seenAt(seen map[superqode.RelPath]time.Time, paths ...superqode.RelPath) (at time.Time) {
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
		cr, ok := c[ch.Path]
		if !ok && !ch.OldPath.IsZero() {
			cr, ok = c[ch.OldPath]
		}
		if !ok {
			continue
		}
		ch.Agent, ch.Agents = superqode.AgentID{}, nil
		if len(cr.Agents) == 1 && !cr.unsure {
			ch.Agent = cr.Agents[0]
		} else {
			ch.Agents = cr.Agents
		}
		ch.Hunks = cr.Hunks
		if !cr.Seen.IsZero() {
			ch.FirstSeen = cr.Seen
		}
	}
}

// credit says whose a change is.
type credit struct {
	Agents []superqode.AgentID    `json:"agents"` // in the order in which they did it
	Seen   time.Time              `json:"first_seen,omitzero"`
	Hunks  []superqode.ChangeHunk `json:"hunks"`
	unsure bool                   // of some of it nobody is known to have done it
}

// credits says whose the changes of several agents are, by path.
type credits map[superqode.RelPath]credit

// changeHunk is a hunk as changes are reported, nobody's yet.
func changeHunk(h merge.Hunk) superqode.ChangeHunk {
	return superqode.ChangeHunk{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines}
}
