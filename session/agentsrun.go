package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/team"
)

// RunAgents opens a session, runs several agents in it at the same time and ends
// it. Result and error are as those of Run; the result's exit code is the first
// that is not zero, in the order given. Changes that could not be merged give an
// error that wraps superqode.ErrConflict.
func (m *Manager) RunAgents(ctx context.Context, open OpenOptions, exec program.ExecOptions, opt team.AgentsOptions) (*artifacts.Result, error) {
	if err := team.CheckAgents(opt.Agents); err != nil {
		return nil, err
	}
	if mode.Of(open.Mode).InPlace && !opt.Shared && len(opt.Agents) > 1 {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "in %s mode the workspace is the origin itself: several agents can only share it", open.Mode), "add --shared-workspace, or use --worktree")
	}
	open.Owned, open.Agent = true, superqode.AgentID{}
	s, err := m.openInterruptible(ctx, open, exec.Signals)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	relay := team.NewRelay(exec.Signals, len(opt.Agents))
	if opt.Shared { // before the agents' values of the session are made
		if err := s.setUpAgents(ctx, []*Session{s}, open.Setup.with(exec), relay); err != nil {
			relay.Stop()
			return s.endUnset(ctx, exec, err)
		}
	}
	members, err := s.openAgents(ctx, opt.Agents, open, opt.Shared)
	if sig := relay.Ended(); err == nil && sig != nil {
		err = &InterruptError{sig}
		for _, c := range members {
			if !opt.Shared {
				err = errors.Join(err, c.discard())
			}
		}
	}
	if err != nil {
		relay.Stop()
		return nil, errors.Join(err, s.discard())
	}
	if !opt.Shared {
		err = s.setUpAgents(ctx, members, open.Setup.with(exec), relay)
	}
	if err != nil {
		relay.Stop()
		return s.endUnset(ctx, exec, err)
	}
	at := make([]team.Member, len(members))
	for i, c := range members {
		at[i] = team.Member{Site: c.Site, Exec: c.Exec}
	}
	t := team.New(s.Site, opt, exec, relay, at)
	runErr := t.Run(ctx)
	relay.Stop()
	stop := team.Ignore(exec.Signals)
	defer stop()
	why := t.NotApplied(runErr)
	result, err := s.End(context.WithoutCancel(ctx), EndOptions{Failed: why != "", Locked: true, EndApply: EndApply{open.NoRevert, why}})
	if err != nil && result != nil && len(result.Revert.Differences) > 0 {
		err = fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	return result, errors.Join(runErr, err)
}
