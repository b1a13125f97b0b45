package attribution

import (
	"context"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/state"
)

// noAgent is the error of an agent that has no part in the session.
func (s *Authorship) noAgent(agent superqode.AgentID) error {
	return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has no changes by agent %s", s.Rec.ID, agent), "superqode workspace changes --session %s", s.Rec.ID)
}

// AgentEnds is ends for what one agent changed: in a workspace of its own all of
// that, whether it could be merged with the others' or not; in a shared one what
// is known to be the agent's.
func (s *Authorship) AgentEnds(ctx context.Context, agent superqode.AgentID) (e merge.Ends, err error) {
	i := slices.IndexFunc(s.Rec.Agents, func(a state.AgentRecord) bool { return a.Agent == agent })
	switch {
	case i < 0 && agent == s.Rec.Agent:
		e, err = s.Ends(ctx)
		if err == nil && e.Base != "" {
			err = s.OpenStore(ctx)
		}
		return e, err
	case i < 0 && len(s.Rec.Agents) > 0, i < 0 && !s.Tracked():
		return e, s.noAgent(agent)
	case i < 0 || s.Rec.Shared:
		return s.sharedEnds(ctx, agent)
	}
	if err := s.OpenStore(ctx); err != nil {
		return e, err
	}
	if s.Team() {
		if _, err := s.lookAgents(ctx); err != nil {
			return e, err
		}
		w := s.SeenWorks[i]
		e.Changes, e.Left = w.List, w.Left
		if w.Commit != "" {
			e.Base, e.Final = s.agentBase(i), s.agentRef(i)
		}
		return e, nil
	}
	f, err := s.ReadAgents()
	if err != nil || f == nil || i >= len(f.Agents) {
		return e, err
	}
	e.Changes = f.Agents[i].Changes
	if f.Agents[i].HasFinal {
		e.Base, e.Final = s.agentBase(i), s.agentRef(i)
	}
	return e, nil
}

// AgentChanges returns what one agent changed; see Changes.
func (s *Authorship) AgentChanges(ctx context.Context, agent superqode.AgentID) ([]superqode.Change, error) {
	if agent == s.Rec.Agent && len(s.Rec.Agents) == 0 && !s.Tracked() {
		return s.Changes(ctx)
	}
	e, err := s.AgentEnds(ctx, agent)
	return e.Changes, err
}
