package mode

import (
	"context"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/revert"
)

// FillWorktree makes the workspace of worktree mode. The repository's state is
// recorded beside it: both only read the origin, and what git worktree add makes
// there is no part of the state.
func FillWorktree(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	var repo *revert.RepoState
	var res *linked.Result
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		repo, err = revert.Capture(s.Source.Repo, filepath.Join(s.Folder, "state"))
		return err
	})
	g.Go(func() (err error) {
		res, err = linked.Create(gctx, linked.Options{
			Repo: s.Source.Repo, ID: s.Rec.ID, Path: string(s.Rec.Workspace), From: opt.From, Head: opt.Commit, Include: opt.Include, Format: opt.Format, Lock: s.Project.Lock,
			Meter: s.Meter,
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	s.RepoState, s.Base, s.OriginBase = repo, res.Base, res.Origin
	s.Rec.AdminDir = state.HostPath(res.AdminDir)
	s.Warn(res.Warnings...)
	return res.Missing, nil
}

// SaveBase writes base and origin beside the record. The base comes last: it
// vouches only for files that did not change within the last tick of the clock,
// so there is a moment to wait, and the other writes use it.
func SaveBase(ctx context.Context, s *site.Site) error {
	digest, err := s.Base.Digest()
	if err != nil {
		return err
	}
	s.Rec.Base.Digest = digest
	s.Rec.Base.Files, s.Rec.Base.Bytes = s.Base.Count()
	if s.RepoState != nil {
		if err := s.RepoState.Save(filepath.Join(s.Folder, "state.json")); err != nil {
			return err
		}
	}
	if s.OriginBase != nil {
		knowContents(s.OriginBase, s.Base)
		if err := s.OriginBase.Save(filepath.Join(s.Folder, "origin.snap")); err != nil {
			return err
		}
	}
	if err := s.Base.Settle(ctx); err != nil {
		return err
	}
	return s.Base.Save(filepath.Join(s.Folder, "base.snap"))
}
