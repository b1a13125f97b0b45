package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// dispose takes away the workspace of a session whose contents were salvaged. An
// active session goes the whole way down, with its report. Where that fails, for
// the origin is gone, say, force takes the workspace all the same.
func (s *Session) dispose(ctx context.Context, d mode.Disposal, force bool) error {
	if err := mode.MoveOut(ctx, s.Site, d.Ignored); err != nil {
		return err
	}
	if s.Rec.State == superqode.StateActive {
		_, err := s.End(ctx, EndOptions{Keep: state.KeepNever})
		if err == nil || s.Rec.State == superqode.StateDone || !force || errors.Is(err, superqode.ErrLocked) {
			return err
		}
		s.Tell(fmt.Sprintf("session %s was removed without its end: %v", s.Rec.ID, err))
	}
	if err := mode.MoveOut(ctx, s.Site, d.Large); err != nil {
		return err
	}
	if err := mode.TakeAway(ctx, s.Site, false); err != nil {
		return err
	}
	failpoint.Hit("cleanup.taken")
	now := s.Now().UTC()
	err := s.Update(ctx, func(r *state.Record) {
		r.State = superqode.StateDone
		if r.EndedAt.IsZero() {
			r.EndedAt = now
		}
	})
	if err != nil {
		return err
	}
	failpoint.Hit("cleanup.buried")
	return s.clear()
}

// unsaved tells, in words, whether the workspace holds changes that are kept
// nowhere else; "" means that it does not: there are none, or the session's end
// has collected exactly these.
func (s *Session) unsaved(ctx context.Context) (_ string, err error) {
	l, err := s.Look(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.Close(string(s.Rec.Workspace))) }()
	switch {
	case l.Gone != "" || len(l.Changes) == 0 && len(l.Problems) == 0:
		return "", nil
	case len(l.Problems) > 0:
		return fmt.Sprintf("it holds %s that cannot be read", text.Plural(len(l.Problems), "path")), nil
	}
	if s.Rec.State == superqode.StatePreserved && s.Rec.Collected {
		digest, err := l.Final.Digest()
		if err != nil {
			return "", err
		}
		if digest == s.Rec.Final.Digest {
			return "", nil
		}
	}
	return fmt.Sprintf("it holds %s that %s kept nowhere else", text.Plural(len(l.Changes), "change"), map[bool]string{true: "is", false: "are"}[len(l.Changes) == 1]), nil
}
