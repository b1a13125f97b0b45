package mode

import (
	"context"
	"errors"
	"os"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// plain is what kinds have in common: the workspace is a folder of superqode's,
// in which git's own files are no part of a snapshot. It can neither be made nor
// brought back.
type plain struct{ Facts }

func (plain) Check(_ context.Context, _ *site.Host, _ *site.Origin, opt Options) (Options, error) {
	return opt, superqode.Errorf(superqode.ErrUsage, "unknown mode %s", opt.Mode)
}

func (plain) Make(_ context.Context, _ *site.Site, opt Options) ([]snapshot.Entry, error) {
	return nil, superqode.Errorf(superqode.ErrUsage, "unknown mode %s", opt.Mode)
}

func (plain) scan(ctx context.Context, s *site.Site, opt snapshot.ScanOptions) (*snapshot.Snapshot, []snapshot.Problem, error) {
	return snapshot.Scan(ctx, s.WorkDir(), opt)
}

func (plain) Skip(s *site.Site) snapshot.Skip {
	return without(skipGit, s.Rec.Exclude)
}

func (plain) patchable(_ *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	return sn, nil
}

func (plain) keepBase(context.Context, *site.Site, *Look) error { return nil }

func (plain) Secure(context.Context, *site.Site) (*revert.Restored, error) { return nil, nil }

func (plain) BringBack(context.Context, *site.Site, *revert.Seen) (*revert.Restored, error) {
	return nil, nil
}

func (plain) Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	return revertWorkspace(ctx, s, opt, r)
}

func (plain) Verify(ctx context.Context, s *site.Site, how revert.Method, paths []superqode.RelPath) (*revert.Verified, error) {
	tree, err := workspaceTree(ctx, s)
	if err != nil {
		return nil, err
	}
	return tree.Verify(ctx, how, paths)
}

func (plain) Remove(ctx context.Context, s *site.Site, _ bool) error {
	return removeFolder(s)
}

func (plain) Origin(ctx context.Context, s *site.Site, _ []superqode.Change) (*artifacts.OriginCheck, error) {
	return checkOrigin(ctx, s)
}

// without adds exclude patterns to what a snapshot leaves out.
func without(skip snapshot.Skip, patterns []string) snapshot.Skip {
	if len(patterns) == 0 {
		return skip
	}
	drop := excluded(patterns)
	return func(path superqode.RelPath, kind snapshot.Kind) bool { return skip(path, kind) || drop(path) }
}

// removeFolder removes a workspace that is a folder and no more.
func removeFolder(s *site.Site) error {
	if err := ownWorkspace(s); err != nil {
		return err
	}
	if err := trash.Put(string(s.Rec.Workspace), s.Project.TrashPath()); err != nil {
		return err
	}
	return gone(string(s.Rec.Workspace), string(s.Rec.AdminDir))
}

// gone checks that nothing is left at the paths that were removed.
func gone(paths ...string) error {
	failpoint.Hit("end.removed")
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return superqode.Errorf(superqode.ErrVerification, "%s is still there after its removal", path)
		}
	}
	return nil
}
