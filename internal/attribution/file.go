package attribution

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// AgentsFile is a session's agents.json: what its agents did, once that was
// merged.
type AgentsFile struct {
	SchemaVersion int           `json:"schema_version"`
	Agents        []AgentResult `json:"agents"` // in the order given
	Credits       []creditEntry `json:"credits"`
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

type creditEntry struct {
	Path      []byte                 `json:"path"`
	Agents    []superqode.AgentID    `json:"agents"`
	FirstSeen time.Time              `json:"first_seen,omitzero"`
	Hunks     []superqode.ChangeHunk `json:"hunks"`
}

func (s *Authorship) agentsPath() string { return filepath.Join(s.Folder, "agents.json") }

func (s *Authorship) WriteAgents(f *AgentsFile, c credits) error {
	f.SchemaVersion, f.Credits = state.SchemaVersion, []creditEntry{}
	for _, p := range slices.Sorted(maps.Keys(c)) {
		f.Credits = append(f.Credits, creditEntry{[]byte(p), c[p].agents, c[p].seen, c[p].hunks})
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
		c[string(e.Path)] = credit{e.Agents, e.FirstSeen, e.Hunks, false}
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
			Agent: a.Agent, Command: a.Command, ExitCode: state.ExitUnknown, TimedOut: a.TimedOut, StartedAt: artifacts.At(a.StartedAt),
			DurationSeconds: text.Seconds(a.EndedAt.Sub(a.StartedAt)), Workspace: artifacts.Workspace{Path: string(s.Rec.Workspace)},
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
