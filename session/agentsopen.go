package session

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
)

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
				err = errors.Join(err, c.discard())
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

// childSession is the session of an agent's own workspace, without any lock.
func (s *Session) childSession(a *attribution.Authorship) *Session {
	c := (&Manager{Host: a.Host}).of(a.Site)
	c.Authorship, c.Authors = a, a
	return c
}

// sibling is the session for one of the agents that work in it together: a value
// of its own, because each runs a program, for the same folder and lock.
func (s *Session) sibling(agent superqode.AgentID) *Session {
	c, at := *s, *s.Site
	c.m = s.m.forAgent(agent)
	at.Host, at.As = c.m.Host, agent
	c.move(&at)
	return &c
}

// forAgent is the manager whose warnings name the agent that they are about.
func (m *Manager) forAgent(agent superqode.AgentID) *Manager {
	return &Manager{Host: m.For(agent)}
}

// openAgent makes one agent's workspace from the session's own.
func (s *Session) openAgent(ctx context.Context, agent superqode.AgentID, open OpenOptions) (*Session, error) {
	m := s.m.forAgent(agent)
	told := m.Tell
	m.Tell = func(string) {} // the same was reported when the session's own workspace was made
	format := s.Base.Format
	open.Agent, open.Name, open.NoRevert, open.Owned = agent, "", false, true
	pl := plan{OpenOptions: open, guard: s.Rec.Guard, parent: s.Rec.ID, make: mode.Options{Mode: s.Rec.Mode, Commit: s.Rec.Base.Head, From: mode.FromWorking, Format: format, Exclude: open.Exclude, Include: open.Include}}
	if pl.Keep == "" {
		pl.Keep = state.KeepFailure
	}
	if mode.Of(s.Rec.Mode).Templates {
		pl.make.Template = string(s.Rec.Workspace)
		pl.Template = pl.make.Template
	}
	c, err := m.newSession(s.Source, s.Project, pl)
	if err != nil {
		return nil, err
	}
	c.Source = s.asOrigin()
	if err := c.guard().CheckKernel(pl.kernelOptions()); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	if err := c.fillGuarded(ctx, pl); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	c.OriginBase, c.RepoState = nil, nil
	m.Tell = told
	if c.Rec.Base.Digest != s.Rec.Base.Digest {
		return nil, errors.Join(superqode.Errorf(superqode.ErrVerification, "its workspace is not the session's: somebody wrote to %s while it was copied", s.Rec.Workspace), c.discard())
	}
	return c, nil
}

// asOrigin is the session's workspace as that from which agents' own are made.
func (s *Session) asOrigin() *site.Origin {
	o := &site.Origin{Top: superqode.RealPrefix(string(s.Rec.Workspace)), Prefix: s.Source.Prefix, Format: s.Source.Format}
	if s.Rec.AdminDir != "" { // a linked worktree
		o.Repo = &git.Repo{
			Git: s.Source.Repo.Git, TopLevel: o.Top, GitDir: superqode.RealPrefix(string(s.Rec.AdminDir)), CommonDir: s.Source.Repo.CommonDir, ObjectFormat: s.Source.Repo.ObjectFormat,
		}
	}
	return o
}

// discardAgents takes away what was made for the agents of a session that was not
// opened to the end.
func (s *Session) discardAgents() error {
	kids, err := s.Children()
	if err != nil {
		return err
	}
	for _, l := range kids {
		c := s.childSession(s.Child(l))
		if herr := holdChild(c); herr != nil {
			err = errors.Join(err, herr)
			continue
		}
		err = errors.Join(err, c.discard())
	}
	return err
}
