package session

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
)

// EndApply says whether an isolated session's changes are brought into the origin
// when it ends. Whatever keeps them back preserves the session.
type EndApply struct {
	Apply      bool
	NotApplied string // with Apply: why nothing is applied after all; "" for nothing against it
}

// endApplied is what an apply at the end of a session came to.
type endApplied struct {
	res   *artifacts.Applied
	check *artifacts.Result // the check of the origin, made before; nil when nothing was tried
	err   error
}

// applyAtEnd applies what was collected. The check of the origin comes first:
// afterwards the origin is what the user asked for.
func (s *Session) applyAtEnd(ctx context.Context, opt EndApply, c *collected, cerr error) *endApplied {
	a := &endApplied{res: &artifacts.Applied{Why: opt.NotApplied}}
	switch {
	case !opt.Apply:
		return nil
	case cerr != nil:
		a.res.Why = "what the session changed could not be collected"
	case c.Gone != "":
		a.res.Why = c.Gone
	}
	if a.res.Why != "" {
		return a
	}
	a.check = &artifacts.Result{}
	if a.err = s.fillOriginCheck(ctx, a.check); a.err != nil {
		a.res.Why = "the origin could not be checked"
		return a
	}
	if a.err = s.checkTarget(); a.err != nil {
		a.res.Why = a.err.Error()
		return a
	}
	e, err := s.StoredEnds(ctx)
	if err == nil {
		var res *artifacts.Applied
		if res, err = s.applyEnds(ctx, e, apply.Options{Stay: s.stay()}); res != nil {
			a.res = res
		}
	}
	if a.err = err; err == nil {
		return a
	}
	if len(a.res.Conflicts) == 0 {
		a.res.Why = err.Error()
	}
	a.res.Applied = nil
	for _, c := range a.res.Conflicts {
		s.Note([]string{c.Message})
	}
	return a
}

// stay is the folder of the origin that the session was opened from.
func (s *Session) stay() string { return string(s.Rec.Origin) + "/" + string(s.Rec.Prefix) }

// keeps reports whether the session has to be preserved because of it.
func (a *endApplied) keeps() bool { return a != nil && a.err != nil }

// fill puts it into the session's result, in the place of a check of the origin.
// It returns false when such a check is still to be made.
func (a *endApplied) fill(s *Session, res *artifacts.Result) bool {
	if a == nil {
		return false
	}
	res.Applied = a.res
	if a.check == nil {
		return false
	}
	res.OriginCheck = a.check.OriginCheck
	if res.OriginCheck.Unchanged && res.Revert.Verified {
		res.Revert.Digest = s.Rec.Base.Digest
	}
	return true
}

// failure is the error for the caller; reported is what of it belongs into the
// report: a conflict is the origin's, and says nothing against the session.
func (a *endApplied) failure() (failure, reported error) {
	if a == nil {
		return nil, nil
	}
	var conflict *apply.Error
	if errors.As(a.err, &conflict) {
		return a.err, nil
	}
	return a.err, a.err
}
