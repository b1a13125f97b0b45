// Package attribution finds out what a session changed and whose each change and
// each line is: of one agent, of several in workspaces of their own whose changes
// are merged, or of several in one workspace, told apart by what they say
// (superqode track) and what they claimed.
package attribution

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Authorship is what a session changed and who changed what: found by a look at
// the workspace, or at those of its agents, and by what agents say and claim.
type Authorship struct {
	*site.Site
	SeenWorks []*AgentWork // what the agents were found to have done, when this value has looked
	Credits   credits      // whose the changes are
}

// Of returns the authorship of one session. Nothing is looked at before it is asked.
func Of(s *site.Site) *Authorship { return &Authorship{Site: s} }

// Look scans the workspace and compares it with the base; what the setup did and
// nobody changed since counts as unchanged. Close the look when no more contents
// are needed.
func (s *Authorship) Look(ctx context.Context) (*mode.Look, error) {
	if s.Team() {
		return s.lookAgents(ctx)
	}
	l, err := mode.LookRaw(ctx, s.Site)
	if err != nil {
		return nil, err
	}
	if err := mode.WithoutSetup(s.Site, l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	spared, err := mode.SetupIgnored(s.Site)
	others := func(p superqode.RelPath) bool { return !spared[p] }
	if err == nil && !slices.ContainsFunc(l.IgnoredPaths, others) {
		l.Ignored = 0 // all of it is the setup's
	}
	l.Compare()
	return l, nil
}

// DescribeAndPatch does what Describe does, writes the changes down and makes the patch, nil
// where git sees none. The caller removes its file, also after an error.
func (s *Authorship) DescribeAndPatch(ctx context.Context, l *mode.Look) (patch *artifacts.New, err error) {
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	base, final := l.Commits[0], l.Commits[1]
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		patch, err = mode.PatchOf(gctx, s.Site, base, final)
		return err
	})
	g.Go(func() error { return s.Describe(gctx, l) })
	if err = g.Wait(); err == nil {
		err = mode.WriteChanges(s.Site, l.Changes)
	}
	return patch, err
}

// Describe fills in line counts and renames with edits.
func (s *Authorship) Describe(ctx context.Context, l *mode.Look) error {
	if len(l.Changes) == 0 {
		return nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	var err error
	if l.Commits[1] != "" {
		l.Changes, err = s.Store.DescribeStored(ctx, l.Commits[0], l.Commits[1], l.Changes)
	} else if err = mode.KeepBase(ctx, s.Site, l); err == nil {
		l.Changes, err = s.Store.Describe(ctx, l.Base, l.Final, l.Changes)
	}
	if err != nil {
		return err
	}
	if s.Tracked() {
		p, err := s.partsOf(ctx, l)
		if err != nil {
			return err
		}
		s.Credits = p.credits()
		if err := p.Close(); err != nil {
			return err
		}
	}
	return s.StampSeen(l.Changes)
}

// Changes returns what differs between the session's base and its workspace as
// it is now or, once the session has ended and its workspace is gone, as it was
// in the end.
func (s *Authorship) Changes(ctx context.Context) ([]superqode.Change, error) {
	if s.Past() {
		return mode.ReadChanges(s.Site)
	}
	// found and checked while the files are looked at; describe asks again and sees the error
	go func() { _, _ = s.Git(ctx) }()
	l, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Describe(ctx, l), l.Close()); err != nil {
		return nil, err
	}
	if l.Gone != "" {
		s.Tell(l.Gone)
	}
	for _, p := range l.Problems {
		s.Tell(text.Printable(p.Path) + ": " + p.Err.Error())
	}
	return l.Changes, nil
}

// StampSeen gives every change the time at which superqode first saw it, and
// the session's agent as its author.
func (s *Authorship) StampSeen(changes []superqode.Change) error {
	seen, err := mode.ReadSeen(s.Site)
	if err != nil {
		return err
	}
	credits, err := s.loadCredits()
	if err != nil {
		return err
	}
	now, fresh := s.Now().UTC().Truncate(time.Millisecond), false
	for i := range changes {
		c := &changes[i]
		if c.Agent.IsZero() {
			c.Agent = s.Rec.Agent
		}
		key := c.Path.String()
		if _, ok := seen[key]; !ok {
			seen[key], fresh = now, true
			if at, ok := s.Watched[key]; ok && at.Before(now) {
				seen[key] = at
			}
		}
		c.FirstSeen = seen[key]
	}
	credits.stamp(changes)
	if !fresh {
		return nil
	}
	return mode.WriteSeen(s.Site, seen)
}

// Ends finds what a session's patch lies between: as the workspace is now or, of
// a session that has ended, as it was in the end.
func (s *Authorship) Ends(ctx context.Context) (e merge.Ends, err error) {
	if s.Past() {
		return s.StoredEnds(ctx)
	}
	l, err := s.Look(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if l.Gone != "" {
		err := superqode.Errorf(superqode.ErrNotFound,
			"%s: there is nothing to apply, and taking that for the wish to delete every file would be wrong", l.Gone)
		return e, superqode.WithHint(err, "superqode workspace info --session %s", s.Rec.ID)
	}
	for _, p := range l.Problems {
		e.Left = append(e.Left, text.Printable(p.Path)+" could not be read: "+p.Err.Error())
	}
	if len(l.Changes) == 0 {
		return e, nil
	}
	left := e.Left
	e, err = s.endsOf(ctx, l)
	e.Left = left
	return e, err
}

// endsOf stores what a look has found.
func (s *Authorship) endsOf(ctx context.Context, l *mode.Look) (e merge.Ends, err error) {
	e.Changes = l.Changes
	e.Base, e.Final, err = mode.StoreEnds(ctx, s.Site, l)
	return e, err
}

// StoredEnds are the ends that were stored when the session was collected. The error wraps
// superqode.ErrNotFound where that failed: there is nothing to apply then, which is not to
// say that nothing was changed.
func (s *Authorship) StoredEnds(ctx context.Context) (e merge.Ends, err error) {
	if !s.Rec.HasFinal {
		if err := mode.Unstored(s.Site); err != nil {
			return e, err
		}
	}
	e.Changes, err = mode.ReadChanges(s.Site)
	if !s.Rec.HasFinal || err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return e, err
	}
	e.Base, e.Final = s.Ref("base"), s.Ref("final")
	return e, s.OpenStore(ctx)
}

// OpenScratch makes a scratch folder for merges with the origin.
func (s *Authorship) OpenScratch(ctx context.Context) (*merge.Scratch, error) {
	return s.openScratch(ctx, string(s.Rec.Origin))
}

// openScratch makes a scratch folder for merges with what lies in the store, or in
// an origin.
func (s *Authorship) openScratch(ctx context.Context, origin string) (*merge.Scratch, error) {
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	g, err := s.Git(ctx)
	if err != nil {
		return nil, err
	}
	return merge.Open(ctx, merge.Options{Git: g, Store: s.Store, Dir: s.Folder, Origin: origin})
}

// Past reports whether the workspace tells no more what the session changed.
func (s *Authorship) Past() bool {
	return s.Rec.State == superqode.StateDone || s.Rec.Step == state.StepBringBack
}

// noAgent is the error of an agent that has no part in the session.
func (s *Authorship) noAgent(agent superqode.AgentID) error {
	err := superqode.Errorf(superqode.ErrNotFound, "session %s has no changes by agent %s", s.Rec.ID, agent)
	return superqode.WithHint(err, "superqode workspace changes --session %s", s.Rec.ID)
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
