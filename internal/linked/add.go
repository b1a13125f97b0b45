package linked

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// addTries is how often git worktree add is started. It fails when another git
// makes or prunes a worktree in the same moment.
const addTries = 4

// undoTime bounds the removal of a half-made workspace.
const undoTime = time.Minute

// add makes the admin folder and the empty workspace.
func (c *creation) add(ctx context.Context) error {
	if err := failpoint.Err("worktree.add"); err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	err = c.addLocked(ctx)
	if uerr := unlock(); err == nil {
		err = uerr
	}
	if err == nil {
		err = failpoint.Err("worktree.added")
	}
	return err
}

func (c *creation) lock(ctx context.Context) (func() error, error) {
	if c.Lock == nil {
		return func() error { return nil }, nil
	}
	return c.Lock(ctx)
}

func (c *creation) addLocked(ctx context.Context) error {
	c.tried = true
	// guessRemote and useRelativePaths would change the origin's configuration
	// or the form of the files that are compared below.
	args := []string{"-c", "worktree.useRelativePaths=false", "-c", "gc.auto=0", "worktree", "add", "--detach", "--no-checkout", c.Path, c.Head}
	for try := 1; ; try++ {
		err := c.Repo.Run(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args})
		if err == nil {
			break
		}
		if _, serr := os.Lstat(c.Path); try == addTries || ctx.Err() != nil || !errors.Is(serr, fs.ErrNotExist) || full(err) {
			return err
		}
		select {
		case <-time.After(time.Duration(try*try) * 10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var err error
	c.admin, err = adminDir(c.Repo, c.Path)
	return err
}

// full recognizes a git that ran out of space, where trying again only costs
// time. git reports no errno, so this matches its words, which LC_ALL=C fixes;
// a miss means three more tries.
func full(err error) bool {
	var exit *git.ExitError
	return errors.As(err, &exit) && (strings.Contains(exit.Stderr, "No space left") || strings.Contains(exit.Stderr, "Read-only file system") || strings.Contains(exit.Stderr, "Permission denied"))
}

// adminDir reads which admin folder the workspace at path belongs to.
func adminDir(repo *git.Repo, path string) (string, error) {
	data, err := atomicfile.Read(filepath.Join(path, ".git"))
	if err != nil {
		return "", err
	}
	dir, ok := strings.CutPrefix(strings.TrimSuffix(string(data), "\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s is not a git worktree", path)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, checkAdmin(repo, dir, path)
}

// undo removes what a failed Create left.
func (c *creation) undo(ctx context.Context) error {
	if !c.tried {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	admin := c.admin
	if admin == "" { // git was interrupted, or refused
		admin = filepath.Join(c.Repo.CommonDir, "worktrees", c.ID.String())
	}
	err = removeAdmin(c.Repo, admin, c.Path)
	return errors.Join(err, trash.RemoveTree(ctx, c.Path), unlock())
}
