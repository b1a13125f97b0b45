package session

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
)

// shareParts stores, for agents that worked in one workspace, what is known to be
// each one's: its changes and the patch of them. A session without statements of
// its agents has no parts.
func (s *Session) shareParts(ctx context.Context, c *collected) error {
	if !s.Rec.Shared {
		return nil
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	f := &attribution.AgentsFile{}
	for _, a := range s.Rec.Agents {
		r := attribution.AgentResult{Agent: a.Agent, Conflicts: []attribution.ConflictEntry{}}
		if log := artifacts.SessionLog(s.Rec.ID, a.Agent.String()+"-command"); has(c.artifacts, log) {
			r.Log = log
		}
		if s.Tracked() && s.Rec.HasFinal {
			if err := s.sharePart(ctx, store, c, &r); err != nil {
				return fmt.Errorf("agent %s: %w", a.Agent, err)
			}
		}
		f.Agents = append(f.Agents, r)
	}
	return s.WriteAgents(f, nil)
}

func (s *Session) sharePart(ctx context.Context, store *artifacts.Store, c *collected, r *attribution.AgentResult) error {
	all := merge.Ends{Base: s.Ref("base"), Final: s.Ref("final"), Changes: c.Changes}
	e, err := s.SharedPart(ctx, &all, r.Agent)
	if err != nil || e.Base == "" {
		return err
	}
	r.Changes = e.Changes
	patch, err := mode.PatchOf(ctx, s.Site, e.Base, e.Final)
	if err != nil || patch == nil {
		return err
	}
	defer os.Remove(patch.File)
	patch.Path, patch.Agent = artifacts.AgentPatch(s.Rec.ID, r.Agent), r.Agent
	patch.Description = "what is known to be agent " + r.Agent.String() + "'s; git apply brings it into the origin as it was at the start"
	r.Patch = patch.Path
	added, err := store.AddAll(ctx, []artifacts.New{*patch})
	c.artifacts = append(c.artifacts, added...)
	return err
}

func has(list []artifacts.Artifact, path string) bool {
	for _, a := range list {
		if a.Path.String() == path {
			return true
		}
	}
	return false
}
