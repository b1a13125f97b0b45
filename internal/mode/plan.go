package mode

import (
	"cmp"
	"context"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Check decides the mode, resolves the revision and refuses what does not fit the
// origin, before anything is made. It returns the options complete. The error
// wraps ErrUsage, or ErrNotFound for an unknown revision.
func Check(ctx context.Context, h *site.Host, o *site.Origin, opt Options) (Options, error) {
	opt.From = cmp.Or(opt.From, FromWorking)
	var err error
	if opt.Format, err = snapshot.ParseFormat(o.Format); err != nil {
		return opt, err
	}
	if opt.Mode == "" || opt.Mode == superqode.ModeAuto {
		opt.Mode = autoMode(o, opt.Template)
	}
	switch opt.Mode {
	case superqode.ModeWorktree:
		return checkWorktree(ctx, o, opt)
	case superqode.ModeSnapshot, superqode.ModeDirectory:
		return opt, planCopy(opt, superqode.RealPrefix(h.Home))
	case superqode.ModeGitSnapshot, superqode.ModeShared:
		if err := planInPlace(o, opt); err != nil {
			return opt, err
		}
		if o.Repo != nil {
			opt.Commit, err = o.Repo.Head(ctx)
		}
		return opt, err
	}
	return opt, superqode.Errorf(superqode.ErrUsage, "unknown mode %s", opt.Mode)
}

// checkWorktree resolves the commit that the worktree begins with.
func checkWorktree(ctx context.Context, o *site.Origin, opt Options) (Options, error) {
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
	opt.Commit = head
	if opt.From != FromWorking {
		if opt.Commit, err = o.Repo.Commit(ctx, opt.From); err != nil {
			return opt, superqode.WithHint(err, "git log --oneline --all")
		}
		opt.From = opt.Commit
	}
	return opt, nil
}
