package session

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

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
		return nil, l.Record, superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "apply --commits moves a branch, and this runs inside session %s of the same origin", id), "ask the user")
	}
	m.noticeDead(p)
	s, err := m.attach(l)
	if err == nil && l.State == superqode.StateDone {
		err = s.hold()
	}
	if err != nil {
		return nil, l.Record, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if mode.Of(s.Rec.Mode).InPlace && !s.Rec.State.Ended() {
		return nil, s.Rec, &mode.HolderError{ID: s.Rec.ID, Mode: s.Rec.Mode}
	}
	if err := s.checkTarget(); err != nil {
		return nil, s.Rec, err
	}
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return nil, s.Rec, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := mode.ClaimAlone(s.Project); err != nil {
		return nil, s.Rec, err
	}
	if err := m.finishApplies(ctx, s.Project, nil); err != nil {
		return nil, s.Rec, err
	}
	res, err := s.applyCommits(ctx, check)
	return res, s.Rec, err
}

func (s *Session) applyCommits(ctx context.Context, check bool) (*artifacts.AppliedCommits, error) {
	apply.Sweep(s.Folder)
	j, err := s.applyJob(ctx)
	if err != nil {
		return nil, err
	}
	var made *gitdir.Commits
	if !s.Rec.State.Ended() {
		if made, err = gitdir.KeepCommits(ctx, s.Site); err != nil {
			return nil, err
		}
	}
	if made == nil {
		if made, err = gitdir.StoredCommits(ctx, s.Site); err != nil {
			return nil, err
		}
	}
	if made == nil {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s made no commits", s.Rec.ID), "superqode workspace apply --session %s brings in what it changed", s.Rec.ID)
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return nil, err
	}
	return j.Commits(ctx, made, apply.CommitOptions{Repo: repo, Base: s.LoadBase, Check: check})
}
