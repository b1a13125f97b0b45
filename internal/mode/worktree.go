package mode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// worktreeKind is worktree mode: the workspace is a linked worktree of the
// origin's repository, populated with what the user sees now or with a commit.
type worktreeKind struct{ plain }

// Check resolves the commit that the worktree begins with.
func (worktreeKind) Check(ctx context.Context, _ *site.Host, o *site.Origin, opt Options) (Options, error) {
	opt.Exclude = nil
	switch {
	case opt.Template != "":
		return opt, templateMode(opt)
	case o.Repo == nil:
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is not a git repository, so it can have no worktree", o.Top), "superqode run --snapshot -- CMD")
	case o.Repo.Bare:
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to make a session of", o.Top), "git clone %s DIR && superqode -C DIR run -- CMD", o.Top)
	}
	head, err := o.Repo.Head(ctx)
	if err != nil {
		return opt, err
	}
	if head == "" {
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s has no commit yet, and git makes worktrees of commits only", o.Top), "superqode run --snapshot -- CMD, or commit first")
	}
	return atCommit(ctx, o, opt)
}

// atCommit resolves what the options name as the beginning.
func atCommit(ctx context.Context, o *site.Origin, opt Options) (_ Options, err error) {
	if opt.From == FromWorking {
		opt.Commit, err = o.Repo.Head(ctx)
		return opt, err
	}
	if opt.Commit, err = o.Repo.Commit(ctx, opt.From); err != nil {
		return opt, superqode.WithHint(err, "git log --oneline --all")
	}
	opt.From = opt.Commit
	return opt, nil
}

// dependencies are folders that git mostly ignores and programs do not run without.
var dependencies = []string{"node_modules", ".venv", "venv", "vendor", "target"}

// TellLeftBehind names what a program that failed may have missed in the workspace.
func TellLeftBehind(s *site.Site, exit int) {
	if f := Of(s.Rec.Mode); exit == 0 || f.InPlace || !f.WorkTree {
		return
	}
	for _, name := range dependencies {
		at := filepath.Join(string(s.Rec.Prefix), name)
		if !atomicfile.Exists(filepath.Join(string(s.Rec.Origin), at)) || atomicfile.Exists(filepath.Join(s.WorkDir(), at)) {
			continue
		}
		if base, err := s.LoadBase(); err == nil && base.Find(superqode.RelPath(at)) == nil { // else the program removed it
			s.Tell(fmt.Sprintf("%s stayed behind, since git ignores it: superqode run --include %s -- CMD, or for every session: superqode init", text.Printable(at), text.QuotePOSIX(at)))
		}
	}
}

// Make makes the worktree. The repository's state is recorded at the same time:
// both only read the origin, and what git worktree add makes there is no part of
// the state.
func (worktreeKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
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
	if err := checkSize(s.Source.Top, res.Base, opt.MaxTree); err != nil {
		return nil, err
	}
	for _, p := range res.Included {
		s.Rec.Included = append(s.Rec.Included, state.HostPath(p))
	}
	s.Warn(res.Warnings...)
	return res.Missing, nil
}

// Revert also brings back HEAD and the index when all is reverted.
func (worktreeKind) Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	if err := revertWorkspace(ctx, s, opt, r); err != nil || len(opt.Paths) > 0 || opt.DryRun {
		return err
	}
	if err := opt.Forget(ctx); err != nil {
		return err
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return err
	}
	reset := linked.ResetOptions{Repo: repo, AdminDir: string(s.Rec.AdminDir), Path: string(s.Rec.Workspace), Head: s.Rec.Base.Head}
	if s.Rec.From == FromWorking {
		reset.Index = filepath.Join(s.Folder, "state")
	}
	if err := linked.Reset(ctx, reset); err != nil {
		return fmt.Errorf("bring back HEAD and index of the workspace: %w", err)
	}
	return nil
}

func (worktreeKind) Remove(ctx context.Context, s *site.Site, locked bool) error {
	if err := ownWorkspace(s); err != nil {
		return err
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return err
	}
	ws, admin := string(s.Rec.Workspace), string(s.Rec.AdminDir)
	if admin == "" {
		admin = filepath.Join(repo.CommonDir, "worktrees", s.Rec.ID.String())
	}
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return err
	}
	if made := linked.Made(ws, s.Rec.ID); linked.Of(admin, ws, made) == made && ws != made { // it was never named, or only half
		if err := trash.Put(ws, s.Project.TrashPath()); err != nil {
			return errors.Join(err, unlock())
		}
		ws = made
	}
	remove := linked.Remove
	if locked {
		remove = linked.RemoveLocked
	}
	if err := errors.Join(remove(ctx, repo, admin, ws, s.Project.TrashPath()), unlock()); err != nil {
		return err
	}
	return gone(ws, admin)
}
