package life

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
	"golang.org/x/sync/errgroup"
)

// RunAgents opens a session, runs several agents in it at the same time and ends
// it. Result and error are as those of Run; the result's exit code is the first
// that is not zero, in the order given. Changes that could not be merged give an
// error that wraps superqode.ErrConflict.
func (m *Manager) RunAgents(ctx context.Context, open OpenOptions, exec program.ExecOptions, opt team.AgentsOptions) (*artifacts.Result, error) {
	if err := opt.Check(open.Mode, open.Claims); err != nil {
		return nil, err
	}
	open.Owned, open.Agent = true, superqode.AgentID{}
	s, err := m.openInterruptible(ctx, open, exec.Signals)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	relay := team.NewRelay(exec.Signals, len(opt.Agents))
	if opt.Shared { // before the agents' values of the session are made
		if err := s.setUpAgents(ctx, []*Session{s}, open.Setup.With(exec), relay); err != nil {
			relay.Stop()
			return s.endUnset(ctx, exec, err)
		}
	}
	members, err := s.openAgents(ctx, opt.Agents, open, opt.Shared)
	if sig := relay.Ended(); err == nil && sig != nil {
		err = &program.InterruptError{Signal: sig}
		for _, c := range members {
			if !opt.Shared {
				err = errors.Join(err, c.made.Discard())
			}
		}
	}
	if err != nil {
		relay.Stop()
		return nil, errors.Join(err, s.made.Discard())
	}
	if !opt.Shared {
		err = s.setUpAgents(ctx, members, open.Setup.With(exec), relay)
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
	why := t.NotApplied(runErr)
	result, err := s.End(context.WithoutCancel(ctx), EndOptions{
		Failed: why != "", Locked: true, EndApply: EndApply{open.NoRevert, why}, Signals: exec.Signals,
	})
	if err != nil && result != nil && len(result.Revert.Differences) > 0 {
		err = fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	return result, errors.Join(runErr, err)
}

// opening is how many workspaces are made at once: more would only wait for the
// disk, and for the lock around git worktree add.
const opening = 3

// openAgents makes each agent a workspace of its own, or prepares them all to
// work in the session's. On an error nothing half-made stays beside the session
// itself.
func (s *Session) openAgents(ctx context.Context, list []team.AgentCommand, open OpenOptions, shared bool) (members []*Session, err error) {
	records := make([]state.AgentRecord, len(list))
	for i, a := range list {
		records[i] = state.AgentRecord{Agent: a.Agent, Command: a.Command}
	}
	if err := s.Update(ctx, func(r *state.Record) {
		r.Agents, r.Shared, r.Runs, r.Command = records, shared, len(list), team.CommandOf(list)
	}); err != nil {
		return nil, err
	}
	failpoint.Hit("agents.recorded")
	members = make([]*Session, len(list))
	if shared {
		for i, a := range list {
			members[i] = s.sibling(a.Agent)
		}
		return members, nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(opening)
	for i, a := range list {
		g.Go(func() (err error) {
			members[i], err = s.openAgent(gctx, a.Agent, open)
			if err != nil {
				err = fmt.Errorf("agent %s: %w", a.Agent, err)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		for _, c := range members {
			if c != nil {
				err = errors.Join(err, c.made.Discard())
			}
		}
		return nil, err
	}
	err = s.Update(ctx, func(r *state.Record) {
		for i := range members {
			r.Agents[i].Session = members[i].Rec.ID
		}
	})
	failpoint.Hit("agents.opened")
	return members, err
}

// sibling is the session for one of the agents that work in it together: a value
// of its own, because each runs a program, for the same folder and lock.
func (s *Session) sibling(agent superqode.AgentID) *Session {
	at, m := *s.Site, &Manager{Host: s.m.For(agent)}
	at.Host, at.As = m.Host, agent
	return &Session{Attached: s.Beside(&at), m: m}
}

// openAgent makes one agent's workspace from the session's own.
func (s *Session) openAgent(ctx context.Context, agent superqode.AgentID, open OpenOptions) (*Session, error) {
	m := &Manager{Host: s.m.For(agent)}
	told := m.Tell
	m.Tell = func(string) {} // the same was reported when the session's own workspace was made
	format := s.Base.Format
	open.Agent, open.Name, open.NoRevert, open.Owned = agent, "", false, true
	pl := plan{OpenOptions: open, guard: s.Rec.Guard, parent: s.Rec.ID, folder: filepath.Base(string(s.Rec.Workspace)) + "-" + agent.String(), make: mode.Options{Mode: s.Rec.Mode, Commit: s.Rec.Base.Head, From: mode.FromWorking, Format: format, Exclude: open.Exclude, Include: open.Include, Beside: s.Site}}
	if pl.Keep == "" {
		pl.Keep = superqode.KeepFailure
	}
	if mode.Of(s.Rec.Mode).Templates {
		pl.make.Template = string(s.Rec.Workspace)
		pl.Template = pl.make.Template
	}
	c, err := m.newSession(ctx, s.Source, s.Project, pl)
	if err != nil {
		return nil, err
	}
	c.Source = s.asOrigin()
	if err := c.Guard().CheckKernel(ctx, pl.kernelOptions()); err != nil {
		return nil, errors.Join(err, c.made.Discard())
	}
	if err := c.fillGuarded(ctx, pl); err != nil {
		return nil, errors.Join(err, c.made.Discard())
	}
	c.OriginBase, c.RepoState = nil, nil
	m.Tell = told
	if c.Rec.Base.Digest != s.Rec.Base.Digest {
		return nil, errors.Join(superqode.Errorf(superqode.ErrVerification, "its workspace is not the session's: somebody wrote to %s while it was copied", s.Rec.Workspace), c.made.Discard())
	}
	return c, nil
}

// asOrigin is the session's workspace as that from which agents' own are made.
func (s *Session) asOrigin() *site.Origin {
	if s.Rec.Overlay != nil { // at the same path
		return s.Source
	}
	o := &site.Origin{Top: superqode.RealPrefix(string(s.Rec.Workspace)), Prefix: s.Source.Prefix, Format: s.Source.Format}
	if s.Rec.AdminDir != "" { // a linked worktree
		o.Repo = &git.Repo{
			Git: s.Source.Repo.Git, TopLevel: o.Top, GitDir: superqode.RealPrefix(string(s.Rec.AdminDir)), CommonDir: s.Source.Repo.CommonDir, ObjectFormat: s.Source.Repo.ObjectFormat,
		}
	}
	return o
}

// setUpAgents sets up the workspace of each agent, or that of s, which they share.
// One after the other: most setups fill caches that the next one finds filled.
func (s *Session) setUpAgents(ctx context.Context, members []*Session, opt prepare.Options, signals *team.Relay) error {
	for i, c := range members {
		opt.Signals = signals.To[i]
		if _, err := c.Setup(ctx, opt); err != nil {
			if c != s {
				err = fmt.Errorf("agent %s: %w", c.Rec.Agent, err)
			}
			return err
		}
		if sig := signals.Ended(); sig != nil {
			return &program.InterruptError{Signal: sig}
		}
	}
	return nil
}
