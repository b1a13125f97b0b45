package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Session brings the changes of a session, or of one of its agents, into its origin.
func Session(ctx context.Context, s *attach.Attached, opt Options) (*artifacts.Applied, error) {
	if err := possible(s); err != nil {
		return nil, err
	}
	ends := s.Ends
	if !opt.Agent.IsZero() {
		ends = func(ctx context.Context) (merge.Ends, error) { return s.AgentEnds(ctx, opt.Agent) }
	}
	e, err := ends(ctx)
	if err != nil {
		return nil, err
	}
	return Between(ctx, s, e, opt)
}

// possible refuses a session that still works in the origin itself, and an origin
// that cannot be applied to.
func possible(s *attach.Attached) error {
	if mode.Of(s.Rec.Mode).InPlace && !s.Rec.State.Ended() {
		return &mode.HolderError{ID: s.Rec.ID, Mode: s.Rec.Mode}
	}
	return CheckTarget(&s.Rec)
}

// CheckTarget refuses an origin that has no work tree: its files are git's own.
func CheckTarget(r *state.Record) error {
	if r.CommonDir != "" {
		return nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(string(r.Origin), name)); err != nil {
			return nil
		}
	}
	return superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to apply to", r.Origin)
}

// Between applies what lies between two states.
func Between(ctx context.Context, s *attach.Attached, e merge.Ends, opt Options) (res *artifacts.Applied, err error) {
	unlock, err := begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j, err := jobOf(ctx, s.Site)
	if err != nil {
		return nil, err
	}
	opt.Refuse = func(ctx context.Context, list []merge.Change) ([]artifacts.ApplyConflict, error) {
		return s.RefuseUnclaimed(ctx, opt.Agent, list)
	}
	return j.Apply(ctx, e, opt)
}

// begin makes sure that nobody else applies to the origin, or works in it, until
// unlock is called.
func begin(ctx context.Context, s *attach.Attached) (unlock func() error, err error) {
	unlock, err = s.Project.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if err = mode.ClaimAlone(s.Project); err == nil {
		err = finishAll(ctx, s.Host, s.Project, nil)
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	Sweep(s.Folder)
	return unlock, nil
}

// jobOf is the session as package apply knows it.
func jobOf(ctx context.Context, s *site.Site) (*Job, error) {
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	g, err := s.Git(ctx)
	if err != nil {
		return nil, err
	}
	j := endingOf(s)
	j.Store, j.Git = s.Store, g
	return j, nil
}

// endingOf is jobOf for finishing what was cut short: it needs neither git nor
// the store.
func endingOf(s *site.Site) *Job {
	return &Job{ID: s.Rec.ID, Agent: s.Rec.Agent, Dir: s.Folder, Origin: s.Rec.Origin, Now: s.Now, Salvage: s.Salvage, Warn: s.Tell}
}

// Commits puts the commits of a session on the origin's branch; with check it is
// only decided.
func Commits(ctx context.Context, s *attach.Attached, check bool) (_ *artifacts.AppliedCommits, err error) {
	if err := possible(s); err != nil {
		return nil, err
	}
	unlock, err := begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j, err := jobOf(ctx, s.Site)
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
	return j.Commits(ctx, made, CommitOptions{Repo: repo, Base: s.LoadBase, Check: check})
}
