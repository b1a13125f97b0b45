package session

import "context"

// claimJudge returns what decides whether an agent had the right to make a
// change, or nil where claims are advice only. The answer is why it had not, ""
// for a change that is right.
func (s *Session) claimJudge(context.Context) (func(w *agentWork, c *applyChange) string, error) {
	return nil, nil
}
