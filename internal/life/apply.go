package life

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode/internal/supervisor"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Apply brings the changes of the session that ref names into the work tree of
// its origin: all that were asked for or, with an error that wraps ErrConflict,
// none. Index, HEAD and refs are not touched. Of a session that has not ended
// the workspace is taken as it is now.
//
// The result is not nil as soon as it was decided what would happen.
func (m *Manager) Apply(ctx context.Context, dir, ref string, opt apply.Options) (_ *artifacts.Applied, _ state.Record, err error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, state.Record{}, err
	}
	if l.State == superqode.StateActive && l.Alive {
		m.Tell(fmt.Sprintf("session %s is in use; what is in its workspace at this moment is taken", l.ID))
	}
	s, err := m.forApply(l)
	if err != nil {
		return nil, l.Record, err
	}
	res, err := apply.Session(ctx, s.Attached, opt)
	return res, s.Rec, errors.Join(err, s.Close())
}

// ApplyCommits puts the commits of the session that ref names on the origin's
// current branch, or on its detached HEAD, and brings work tree and index along: all
// of them or, with an error that wraps ErrConflict, none. Where the origin stands on
// the commit that the session began with, they are the session's own commits;
// elsewhere they are made anew as git am would, authors and messages kept. What the
// origin holds of the session's own beginning, not committed, becomes what was
// committed of it, and is salvaged; any other change of the user's in a path of the
// commits is a conflict, and elsewhere it stays. With check it is only decided.
//
// The result is not nil as soon as it was decided what would happen.
func (m *Manager) ApplyCommits(ctx context.Context, dir, ref string, check bool) (_ *artifacts.AppliedCommits, _ state.Record, err error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, state.Record{}, err
	}
	p := m.session(l).Project
	if id := supervisor.InsideOf(p); id != "" {
		return nil, l.Record, superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
			"apply --commits moves a branch, and this runs inside session %s of the same origin", id), "ask the user")
	}
	s, err := m.forApply(l)
	if err != nil {
		return nil, l.Record, err
	}
	res, err := apply.Commits(ctx, s.Attached, check)
	return res, s.Rec, errors.Join(err, s.Close())
}

// forApply attaches to a session whose changes are applied, so that no cleanup
// removes it meanwhile.
func (m *Manager) forApply(l state.Listed) (*Session, error) {
	m.NoticeDead(m.session(l).Project)
	s, err := m.attach(l)
	if err == nil && l.State == superqode.StateDone {
		err = s.Hold()
	}
	return s, err
}

// apply brings what was collected into the origin, where that was asked for.
// Whatever keeps it back preserves the session. The origin is checked before it:
// afterwards it is what the user asked for.
func (e *ending) apply(ctx context.Context) error {
	if !e.opt.Apply || mode.Of(e.Rec.Mode).InPlace {
		return nil
	}
	e.applied = &artifacts.Applied{Why: e.opt.NotApplied}
	switch {
	case e.failedIn(stepMerge, stepCollect, stepDescribe):
		e.applied.Why = "what the session changed could not be collected"
	case e.look.Gone != "":
		e.applied.Why = e.look.Gone
	}
	if e.applied.Why != "" {
		return nil
	}
	if err := e.checkOrigin(ctx); err != nil {
		e.applied.Why = "the origin could not be checked"
		return err
	}
	err := e.applyStored(ctx)
	if err == nil {
		return nil
	}
	if len(e.applied.Conflicts) == 0 {
		e.applied.Why = err.Error()
	}
	e.applied.Applied = nil
	for _, c := range e.applied.Conflicts {
		e.Note([]string{c.Message})
	}
	return err
}

// applyStored applies what the end has stored.
func (e *ending) applyStored(ctx context.Context) error {
	if err := apply.CheckTarget(&e.Rec); err != nil {
		return err
	}
	ends, err := e.StoredEnds(ctx)
	if err != nil {
		return err
	}
	stay := string(e.Rec.Origin) + "/" + string(e.Rec.Prefix) // the folder that the session was opened from
	res, err := apply.Between(ctx, e.Attached, ends, apply.Options{Stay: stay})
	if res != nil {
		e.applied = res
	}
	return err
}
