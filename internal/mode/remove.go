package mode

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// RemoveTimeout bounds undoing and removing, which go on when the caller's
// context has ended.
const RemoveTimeout = 2 * time.Minute

// TakeAway removes the workspace; see Kind.Remove.
func TakeAway(ctx context.Context, s *site.Site, locked bool) error {
	defer s.Begin("removing the workspace", nil)()
	return For(s.Rec.Mode).Remove(ctx, s, locked)
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
