package session

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/state"
)

// collectAfter is collect, unless the agents' changes could not be put together:
// then the session's workspace does not hold them yet, and nothing may be
// concluded from it.
func (s *Session) collectAfter(ctx context.Context, gathered error) (*collected, error) {
	if gathered != nil {
		return nil, superqode.WithHint(gathered, "superqode workspace end --session %s tries again", s.Rec.ID)
	}
	return s.collect(ctx)
}

// mergeConflict is the error of what could not be merged, or not even be found,
// nil when all could.
func (s *Session) mergeConflict() error {
	for _, w := range s.SeenWorks {
		if w.Gone != "" {
			return superqode.Errorf(superqode.ErrVerification, "agent %s: %s; what it did there is not known", w.Agent, w.Gone)
		}
	}
	if len(s.conflicts) == 0 {
		return nil
	}
	return superqode.WithHint(&MergeError{s.conflicts}, "superqode workspace diff --session %s --agent %s", s.Rec.ID, s.conflicts[0].Agent)
}

// keepsAgent decides whether an agent's own workspace stays, beside the session's:
// always, when that was asked for, else of an agent that failed or that has
// changes which could not be merged.
func (s *Session) keepsAgent(opt EndOptions, agent superqode.AgentID) bool {
	if cmp.Or(opt.Keep, s.Rec.Keep) == state.KeepAlways {
		return true
	}
	for _, a := range s.Rec.Agents {
		if a.Agent == agent && (a.ExitCode == nil || *a.ExitCode != 0) {
			return true
		}
	}
	for _, c := range s.conflicts {
		if c.Agent == agent {
			return true
		}
	}
	return false
}

// agentRunsOr is agentRuns for a result; err is what went wrong before.
func (s *Session) agentRunsOr(err error) (artifacts.AgentRuns, error) {
	runs, rerr := s.AgentRuns()
	return runs, errors.Join(err, rerr)
}
