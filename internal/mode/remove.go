package mode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// RemoveTimeout bounds undoing and removing, which go on when the caller's
// context has ended.
const RemoveTimeout = 2 * time.Minute

// TakeAway removes the workspace and checks that it is gone. Repeating it after
// an interruption is harmless. A worktree that someone locked stays, unless
// locked is set.
func TakeAway(ctx context.Context, s *site.Site, locked bool) error {
	defer s.Begin("removing the workspace", nil)()
	if s.Rec.Mode.InPlace() {
		return nil // the workspace is the user's own folder
	}
	if err := ownWorkspace(s); err != nil {
		return err
	}
	ws, admin := string(s.Rec.Workspace), string(s.Rec.AdminDir)
	if s.Rec.Mode == superqode.ModeWorktree {
		repo, err := s.Repo(ctx)
		if err != nil {
			return err
		}
		if admin == "" {
			admin = filepath.Join(repo.CommonDir, "worktrees", s.Rec.ID.String())
		}
		unlock, err := s.Project.Lock(ctx)
		if err != nil {
			return err
		}
		remove := linked.Remove
		if locked {
			remove = linked.RemoveLocked
		}
		if err := errors.Join(remove(ctx, repo, admin, ws, s.Project.TrashPath()), unlock()); err != nil {
			return err
		}
	} else if err := trash.Put(ws, s.Project.TrashPath()); err != nil {
		return err
	}
	failpoint.Hit("end.removed")
	for _, path := range []string{ws, admin} {
		if path == "" {
			continue
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return superqode.Errorf(superqode.ErrVerification, "%s is still there after its removal", path)
		}
	}
	return nil
}
