// Package linked gives a session its workspace, a linked worktree of the
// user's repository, and removes it again.
//
// Create asks git for the admin folder only (worktree add --no-checkout) and
// fills the workspace itself: files are copied from the origin's work tree,
// which costs a fifth of inflating them from objects, and the index is the
// origin's with the stat data of the copies, so that git status prints the same
// on both sides and reads no file again. While git works the origin is scanned.
//
// Create only reads the origin. It does not refresh its index, and changes
// nothing in it but .git/worktrees/<id>, which Remove deletes again. git
// decides what is ignored (git check-ignore), and checks out what cannot be
// copied.
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

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Working is the From of a workspace that holds what the user sees now.
const Working = "working"

// Options says which workspace to make of which origin.
type Options struct {
	Repo *git.Repo
	ID   superqode.SessionID // the admin folder's name
	Path string              // the workspace; it does not exist yet. It is made under the id's name beside that, which gives the admin folder its own
	From string              // Working, or a commit id: that commit's clean tree
	Head string              // the workspace's HEAD; "" means From, or the origin's HEAD
	// patterns (gitignore syntax) of ignored files to bring along, in addition to .worktreeinclude
	Include []string
	Format  snapshot.Format // the repository's object format
	// Lock takes the project lock, which must be held around every change in
	// .git/worktrees: parallel git worktree add fails one time in ten. nil means
	// that the caller holds it.
	Lock func(context.Context) (unlock func() error, err error)
	// Meter follows the copy of the work tree; may be nil.
	Meter *treecopy.Meter
}

// Result is a workspace that was made.
type Result struct {
	Base *snapshot.Snapshot // the workspace, without .git; every content id is known
	// the origin's work tree, ignored files included, without .git and .superqode; ids only where the index knew them
	Origin *snapshot.Snapshot
	// entries of Base whose contents, according to the index, are not in the origin's object database
	Missing  []snapshot.Entry
	Included []superqode.RelPath // what git ignores and came along; a folder for several of its files
	Head     string              // the commit that HEAD names
	AdminDir string              // .git/worktrees/<id>
	Warnings []string            // what could not come along
}

// Create makes the workspace. On an error, and when ctx ends, neither workspace
// nor admin folder stays.
func Create(ctx context.Context, opt Options) (res *Result, err error) {
	c := &creation{Options: opt}
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.undo(ctx))
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if c.From == Working {
		err = c.fillWorking(ctx)
	} else {
		err = c.fillCommit(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := failpoint.Err("worktree.indexed"); err != nil {
		return nil, err
	}
	return &Result{
		Base: c.base, Origin: c.origin, Missing: c.missing(), Head: c.Head, AdminDir: c.admin, Warnings: c.warnings,
		Included: c.included,
	}, nil
}

// creation is one Create.
type creation struct {
	Options
	config   *git.Config
	index    *git.Index // of the workspace to be: the origin's, or one that git read the commit into
	origin   *snapshot.Snapshot
	problems []snapshot.Problem // what of origin could not be read
	nested   []nestedRepo       // folders of the origin that hold a .git, sorted by path
	facts    []fact             // what the index says about each entry of origin
	attrs    *attributes
	asStored func(path string) bool // equal bytes in file and blob make a clean file
	base     *snapshot.Snapshot
	admin    string
	tried    bool // git worktree add was started
	warnings []string
	included []superqode.RelPath
}

func (c *creation) check(ctx context.Context) error {
	switch {
	case c.Repo.Bare || c.Repo.TopLevel == "":
		err := superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to make a session of",
			c.Repo.GitDir)
		return superqode.WithHint(err, "git clone %s DIR", c.Repo.GitDir)
	case c.ID.IsZero() || !filepath.IsAbs(c.Path):
		return fmt.Errorf("%q is not a valid place for workspace %q", c.Path, c.ID)
	case c.From == "":
		return errors.New("workspace of nothing")
	}
	for _, path := range []string{c.Path, Made(c.Path, c.ID)} { // otherwise undo would remove what is not ours
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s: %w", path, fs.ErrExist), err)
		}
	}
	if c.Head == "" && c.From != Working {
		c.Head = c.From
	}
	if c.Head != "" {
		return nil
	}
	var err error
	if c.Head, err = c.Repo.Head(ctx); err == nil && c.Head == "" {
		err = superqode.Errorf(superqode.ErrUsage, "%s has no commit yet, and git makes worktrees of commits only",
			c.Repo.TopLevel)
		err = superqode.WithHint(err, "superqode run --snapshot -- CMD, or commit first")
	}
	return err
}

// prepare runs git worktree add while the origin is read.
func (c *creation) prepare(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.add(ctx) })
	c.read(ctx, g, false, nil)
	if err := g.Wait(); err != nil {
		return err
	}
	return c.tell()
}

func (c *creation) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// addTries is how often git worktree add is started. It fails when another git
// makes or prunes a worktree in the same moment.
const addTries = 4

// Marker is the environment entry of the git that adds a session's worktree: it outlives
// a superqode that is killed, and would add it after a recovery has looked.
func Marker(id superqode.SessionID) string { return "SUPERQODE_ADDS=" + id.String() }

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
	if err := errors.Join(c.addLocked(ctx), unlock()); err != nil {
		return err
	}
	return failpoint.Err("worktree.added")
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
	made := Made(c.Path, c.ID)
	args := []string{"-c", "worktree.useRelativePaths=false", "-c", "gc.auto=0", "worktree", "add", "--detach",
		"--no-checkout", made, c.Head}
	for try := 1; ; try++ {
		err := c.Repo.Run(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args, Env: []string{Marker(c.ID)}})
		if err == nil {
			break
		}
		if _, serr := os.Lstat(made); try == addTries || ctx.Err() != nil || !errors.Is(serr, fs.ErrNotExist) ||
			full(err) {
			return err
		}
		select {
		case <-time.After(time.Duration(try*try) * 10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var err error
	if c.admin, err = adminDir(c.Repo, made); err != nil || made == c.Path {
		return err
	}
	if err := failpoint.Err("worktree.named"); err != nil {
		return err
	}
	if err := os.Rename(made, c.Path); err != nil {
		return err
	}
	if err := failpoint.Err("worktree.moved"); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(c.admin, "gitdir"), []byte(filepath.Join(c.Path, ".git")+"\n"), 0o644)
}

// Made is where git makes the workspace at path: it calls the admin folder as the workspace.
func Made(path string, id superqode.SessionID) string {
	return filepath.Join(filepath.Dir(path), id.String())
}

// full recognizes a git that ran out of space, where trying again only costs
// time. git reports no errno, so this matches its words, which LC_ALL=C fixes;
// a miss means three more tries.
func full(err error) bool {
	var exit *git.ExitError
	return errors.As(err, &exit) && (strings.Contains(exit.Stderr, "No space left") ||
		strings.Contains(exit.Stderr, "Read-only file system") || strings.Contains(exit.Stderr, "Permission denied"))
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
	made := Made(c.Path, c.ID)
	err = removeAdmin(c.Repo, admin, Of(admin, c.Path, made))
	return errors.Join(err, trash.RemoveTree(ctx, c.Path), trash.RemoveTree(ctx, made), unlock())
}
