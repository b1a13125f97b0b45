package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// look scans the workspace and compares it with the base; what the setup did and
// nobody changed since counts as unchanged. Close the look when no more contents
// are needed.
func (s *Session) look(ctx context.Context) (*look, error) {
	if s.team() {
		return s.lookAgents(ctx)
	}
	l, err := s.lookRaw(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.withoutSetup(l); err != nil {
		return nil, errors.Join(err, l.close(string(s.Rec.Workspace)))
	}
	if spared, err := s.setupIgnored(); err == nil && !slices.ContainsFunc(l.ignoredPaths, func(p string) bool { return !spared[p] }) {
		l.ignored = 0 // all of it is the setup's
	}
	l.changes = snapshot.Compare(l.base, l.final, snapshot.CompareOptions{Renames: true})
	return l, nil
}

// describe fills in line counts and renames with edits.
func (s *Session) describe(ctx context.Context, l *look) error {
	if len(l.changes) == 0 {
		return nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	var err error
	if err := s.keepBase(ctx, l); err != nil {
		return err
	}
	small, large := l.takeLarge(l.changes)
	if l.stored {
		small, err = s.Store.DescribeStored(ctx, l.base, l.final, small, [2]string{s.Ref("base"), s.mergedRef(len(s.Rec.Agents) - 1)})
	} else {
		small, err = s.Store.Describe(ctx, l.base, l.final, small)
	}
	if err != nil {
		return err
	}
	l.changes = append(small, large...)
	slices.SortStableFunc(l.changes, func(a, b superqode.Change) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	if s.tracked() {
		e := merge.Ends{Changes: l.changes}
		if e.Base, e.Final, err = s.storeEnds(ctx, l); err != nil {
			return err
		}
		if s.credits, err = s.sharedCredits(ctx, &e); err != nil {
			return err
		}
	}
	return s.stampSeen(l.changes)
}

// Changes returns what differs between the session's base and its workspace as
// it is now or, once the session has ended and its workspace is gone, as it was
// in the end.
func (s *Session) Changes(ctx context.Context) ([]superqode.Change, error) {
	if s.past() {
		return s.readChanges()
	}
	go func() { _, _ = s.Git(ctx) }() // found and checked while the files are looked at; describe asks again and sees the error
	l, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.describe(ctx, l), l.close(string(s.Rec.Workspace))); err != nil {
		return nil, err
	}
	if l.gone != "" {
		s.Tell(l.gone)
	}
	for _, p := range l.problems {
		s.Tell(text.Printable(p.Path) + ": " + p.Err.Error())
	}
	return l.changes, nil
}

// stampSeen gives every change the time at which superqode first saw it, and
// the session's agent as its author.
func (s *Session) stampSeen(changes []superqode.Change) error {
	seen, err := s.readSeen()
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
	return s.writeSeen(seen)
}
