package session

import (
	"context"

	"github.com/seed-2d964004/superqode"
)

// tracked reports whether agents have told which lines are theirs.
func (s *Session) tracked() bool { return exists(s.trackPath()) }

func (s *Session) trackPath() string { return s.dir + "/track.jsonl" }

// sharedEnds is agentEnds for agents that work in one workspace.
func (s *Session) sharedEnds(_ context.Context, agent superqode.AgentID) (patchEnds, error) {
	return patchEnds{}, s.noAgent(agent)
}
