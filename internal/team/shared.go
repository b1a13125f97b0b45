package team

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
)

// ShareParts stores, for agents that worked in one workspace, what is known to be
// each one's: its changes and the patch of them. A session without statements of
// its agents has no parts;
// changes and stored are the session's; the result is what was added.
func ShareParts(
	ctx context.Context, s *attach.Attached, store *artifacts.Store, changes []superqode.Change,
	stored []artifacts.Artifact,
) (added []artifacts.Artifact, err error) {
	f := &attribution.AgentsFile{}
	for _, a := range s.Rec.Agents {
		r := attribution.AgentResult{Agent: a.Agent, Conflicts: []attribution.ConflictEntry{}}
		log := artifacts.SessionLog(s.Rec.ID, a.Agent.String()+"-command")
		if slices.ContainsFunc(stored, func(a artifacts.Artifact) bool { return a.Path.String() == log }) {
			r.Log = log
		}
		if s.Tracked() && s.Rec.HasFinal {
			part, err := sharePart(ctx, s, store, changes, &r)
			if err != nil {
				return added, fmt.Errorf("agent %s: %w", a.Agent, err)
			}
			added = append(added, part...)
		}
		f.Agents = append(f.Agents, r)
	}
	return added, s.WriteAgents(f, nil)
}

func sharePart(
	ctx context.Context, s *attach.Attached, store *artifacts.Store, changes []superqode.Change,
	r *attribution.AgentResult,
) ([]artifacts.Artifact, error) {
	all := merge.Ends{Base: s.Ref("base"), Final: s.Ref("final"), Changes: changes}
	part, err := s.SharedPart(ctx, &all, r.Agent)
	if err != nil || part.Base == "" {
		return nil, err
	}
	r.Changes = part.Changes
	patch, err := mode.PatchOf(ctx, s.Site, part.Base, part.Final)
	if err != nil || patch == nil {
		return nil, err
	}
	defer os.Remove(patch.File)
	patch.Path, patch.Agent = artifacts.AgentPatch(s.Rec.ID, r.Agent), r.Agent
	patch.Description = "what is known to be agent " + r.Agent.String() +
		"'s; git apply brings it into the origin as it was at the start"
	r.Patch = patch.Path
	return store.AddAll(ctx, []artifacts.New{*patch})
}
