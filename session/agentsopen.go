package session

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/state"
)

// opening is how many workspaces are made at once: more would only wait for the
// disk, and for the lock around git worktree add.
const opening = 3

// openAgents makes each agent a workspace of its own, or prepares them all to
// work in the session's. On an error nothing half-made stays beside the session
// itself.
func (s *Session) openAgents(ctx context.Context, list []AgentCommand, open OpenOptions, shared bool) (members []*Session, err error) {
	records := make([]state.AgentRecord, len(list))
	for i, a := range list {
		records[i] = state.AgentRecord{Agent: a.Agent, Command: a.Command}
	}
	if err := s.update(ctx, func(r *state.Record) {
		r.Agents, r.Shared, r.Runs, r.Command = records, shared, len(list), commandOf(list)
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
				err = errors.Join(err, c.discard())
			}
		}
		return nil, err
	}
	err = s.update(ctx, func(r *state.Record) {
		for i := range members {
			r.Agents[i].Session = members[i].rec.ID
		}
	})
	failpoint.Hit("agents.opened")
	return members, err
}

// sibling is the session for one of the agents that work in it together: a value
// of its own, because each runs a program, for the same folder and lock.
func (s *Session) sibling(agent superqode.AgentID) *Session {
	c := *s
	c.m, c.as = s.m.forAgent(agent), agent
	return &c
}

// forAgent is the manager whose warnings name the agent that they are about.
func (m *Manager) forAgent(agent superqode.AgentID) *Manager {
	cfg := m.cfg
	cfg.Warn = func(line string) { m.cfg.Warn(agent.String() + ": " + line) }
	cfg.Progress = nil // several at a time have no one line to share
	am := NewManager(cfg)
	m.gitOnce.Lock()
	defer m.gitOnce.Unlock()
	am.now, am.gitBin = m.now, m.gitBin
	return am
}

// openAgent makes one agent's workspace from the session's own.
func (s *Session) openAgent(ctx context.Context, agent superqode.AgentID, open OpenOptions) (*Session, error) {
	m := s.m.forAgent(agent)
	told := m.cfg.Warn
	m.cfg.Warn = func(string) {} // the same was told when the session's own workspace was made
	format := s.base.Format
	open.Agent, open.Name, open.NoRevert, open.Owned = agent, "", false, true
	pl := plan{OpenOptions: open, mode: s.rec.Mode, commit: s.rec.Base.Head, from: FromWorking, format: format, guard: s.rec.Guard, parent: s.rec.ID}
	if pl.Keep == "" {
		pl.Keep = state.KeepFailure
	}
	pl.MaxBytes = 0
	if pl.mode == superqode.ModeDirectory {
		pl.Template = string(s.rec.Workspace)
	}
	c, err := m.newSession(s.o, s.p, pl)
	if err != nil {
		return nil, err
	}
	c.o = s.asOrigin()
	if err := c.checkKernel(pl.kernelOptions()); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	if err := c.fillGuarded(ctx, pl); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	c.origin, c.state = nil, nil
	m.cfg.Warn = told
	if c.rec.Base.Digest != s.rec.Base.Digest {
		return nil, errors.Join(superqode.Errorf(superqode.ErrVerification, "its workspace is not the session's: somebody wrote to %s while it was copied", s.rec.Workspace), c.discard())
	}
	return c, nil
}

// asOrigin is the session's workspace as that from which agents' own are made.
func (s *Session) asOrigin() *origin {
	o := &origin{Top: superqode.RealPrefix(string(s.rec.Workspace)), Prefix: s.o.Prefix, Format: s.o.Format}
	if s.rec.Mode == superqode.ModeWorktree {
		o.Repo = &git.Repo{
			Git: s.o.Repo.Git, TopLevel: o.Top, GitDir: superqode.RealPrefix(string(s.rec.AdminDir)), CommonDir: s.o.Repo.CommonDir, ObjectFormat: s.o.Repo.ObjectFormat,
		}
	}
	return o
}

// children returns the sessions of the agents' own workspaces that there are, by
// agent. They are found by their records, not by the parent's: a crash may have
// come between the two.
func (s *Session) children() (map[superqode.AgentID]state.Listed, error) {
	names, err := s.p.SessionNames()
	if err != nil {
		return nil, err
	}
	list := map[superqode.AgentID]state.Listed{}
	for _, id := range names {
		if l, err := state.Load(s.p.SessionPath(id)); err == nil && l.Parent == s.rec.ID {
			list[l.Agent] = l
		}
	}
	return list, nil
}

// discardAgents takes away what was made for the agents of a session that was not
// opened to the end.
func (s *Session) discardAgents() error {
	kids, err := s.children()
	if err != nil {
		return err
	}
	for _, l := range kids {
		c := s.child(l)
		if herr := holdChild(c); herr != nil {
			err = errors.Join(err, herr)
			continue
		}
		err = errors.Join(err, c.discard())
	}
	return err
}
