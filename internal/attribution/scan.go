package attribution

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

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
		return nil, errors.Join(err, l.Close(string(s.Rec.Workspace)))
	}
	if spared, err := mode.SetupIgnored(s.Site); err == nil && !slices.ContainsFunc(l.IgnoredPaths, func(p string) bool { return !spared[p] }) {
		l.Ignored = 0 // all of it is the setup's
	}
	l.Changes = snapshot.Compare(l.Base, l.Final, snapshot.CompareOptions{Renames: true})
	return l, nil
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
	if err := mode.KeepBase(ctx, s.Site, l); err != nil {
		return err
	}
	small, large := l.TakeLarge(l.Changes)
	if l.Stored {
		small, err = s.Store.DescribeStored(ctx, l.Base, l.Final, small, [2]string{s.Ref("base"), s.mergedRef(len(s.Rec.Agents) - 1)})
	} else {
		small, err = s.Store.Describe(ctx, l.Base, l.Final, small)
	}
	if err != nil {
		return err
	}
	l.Changes = append(small, large...)
	slices.SortStableFunc(l.Changes, func(a, b superqode.Change) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	if s.Tracked() {
		e := merge.Ends{Changes: l.Changes}
		if e.Base, e.Final, err = mode.StoreEnds(ctx, s.Site, l); err != nil {
			return err
		}
		if s.Credits, err = s.sharedCredits(ctx, &e); err != nil {
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
	go func() { _, _ = s.Git(ctx) }() // found and checked while the files are looked at; describe asks again and sees the error
	l, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Describe(ctx, l), l.Close(string(s.Rec.Workspace))); err != nil {
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
