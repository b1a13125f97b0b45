package linked

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Remove removes a workspace: it renames the directory into trashDir (on the
// same file system) and deletes the admin folder. It skips what is gone
// already, so that it can be repeated after a crash. The caller holds the
// project lock. It refuses, and wraps superqode.ErrConflict, when adminDir does
// not belong to the workspace, and superqode.ErrLocked when the user locked the
// worktree (git worktree lock); see RemoveLocked.
func Remove(ctx context.Context, repo *git.Repo, adminDir, workspacePath, trashDir string) error {
	if reason, ok := lockReason(adminDir); ok {
		err := superqode.Errorf(superqode.ErrLocked, "worktree %s is locked%s", workspacePath, reason)
		return superqode.WithHint(err, "git -C %s worktree unlock %s", repo.CommonDir, workspacePath)
	}
	return RemoveLocked(ctx, repo, adminDir, workspacePath, trashDir)
}

// RemoveLocked is Remove for a worktree that may be locked.
func RemoveLocked(ctx context.Context, repo *git.Repo, adminDir, workspacePath, trashDir string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if adminDir != "" {
		if err := checkAdmin(repo, adminDir, workspacePath); err != nil {
			return err
		}
	}
	if err := failpoint.Err("worktree.remove"); err != nil {
		return err
	}
	if err := trash.Put(workspacePath, trashDir); err != nil {
		return err
	}
	if err := failpoint.Err("worktree.renamed"); err != nil {
		return err
	}
	if adminDir != "" {
		if err := removeAdmin(repo, adminDir, workspacePath); err != nil {
			return err
		}
	}
	return failpoint.Err("worktree.removed")
}

// lockReason reports whether the user locked the worktree, and why. git itself
// holds that lock, with the word "initializing", while worktree add runs; one
// that stays belongs to a git that died.
func lockReason(admin string) (string, bool) {
	data, err := atomicfile.Read(filepath.Join(admin, "locked"))
	why := strings.TrimSpace(string(data))
	switch {
	case err != nil || admin == "" || why == "initializing":
		return "", false
	case why == "":
		return "", true
	}
	return ": " + why, true
}

// checkAdmin checks that admin is where git keeps admin folders and that it
// belongs to the workspace. A missing folder is fine, and so is one without a
// gitdir file that carries the workspace's name: it is half made or half
// removed.
func checkAdmin(repo *git.Repo, admin, workspace string) error {
	refuse := func(why string) error {
		return superqode.Errorf(superqode.ErrConflict, "admin folder %s %s", admin, why)
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(admin)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	} else if parent != filepath.Join(repo.CommonDir, "worktrees") {
		return refuse("is not in " + filepath.Join(repo.CommonDir, "worktrees"))
	}
	switch st, err := os.Lstat(admin); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.IsDir():
		return refuse("is not a folder")
	}
	data, err := atomicfile.Read(filepath.Join(admin, "gitdir"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		if filepath.Base(admin) == filepath.Base(workspace) {
			return nil
		}
		return refuse("names no workspace")
	}
	if err != nil {
		return err
	}
	back := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(back) {
		back = filepath.Join(admin, back)
	}
	if resolve(filepath.Dir(back)) != resolve(workspace) || filepath.Base(back) != ".git" {
		return refuse(fmt.Sprintf("belongs to %s, not to %s", filepath.Dir(back), workspace))
	}
	return nil
}

// Of returns the workspace that an admin folder belongs to: path, or made where that is
// where git made it and no more is known.
func Of(admin, path, made string) string {
	at := filepath.Dir(strings.TrimSuffix(atomicfile.ReadLine(filepath.Join(admin, "gitdir")), "\n"))
	if at == "." || resolve(at) == resolve(made) {
		return made
	}
	return path
}

// resolve follows the links in the folders above path; the last name itself may
// not exist.
func resolve(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, filepath.Base(path))
}

// removeAdmin deletes an admin folder, its gitdir file last: until then the
// folder names its owner. An empty .git/worktrees goes too, as in git.
func removeAdmin(repo *git.Repo, admin, workspace string) error {
	if err := checkAdmin(repo, admin, workspace); err != nil {
		return err
	}
	names, err := os.ReadDir(admin)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, n := range names {
		if n.Name() == "gitdir" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(admin, n.Name())); err != nil {
			return err
		}
		failpoint.Hit("worktree.admin")
	}
	if err := os.RemoveAll(admin); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(admin)) // fails while there are other worktrees, as it should
	return nil
}

// ResetOptions says which workspace's own git files to bring back.
type ResetOptions struct {
	Repo     *git.Repo
	AdminDir string // .git/worktrees/<id>
	Path     string // the workspace
	Head     string // commit id that HEAD names
	Index    string // a copy of the origin's index as it was; "" for that of Head
}

// Reset brings HEAD, the index and the link between workspace and repository
// back to what Create made. It does not touch files: git compares each of them
// again.
func Reset(ctx context.Context, opt ResetOptions) error {
	if err := checkAdmin(opt.Repo, opt.AdminDir, opt.Path); err != nil {
		return err
	}
	if err := os.MkdirAll(opt.AdminDir, 0o777); err != nil {
		return err
	}
	for _, f := range []struct{ path, text string }{
		{filepath.Join(opt.AdminDir, "commondir"), "../..\n"},
		{filepath.Join(opt.AdminDir, "gitdir"), filepath.Join(opt.Path, ".git") + "\n"},
		{filepath.Join(opt.AdminDir, "HEAD"), opt.Head + "\n"},
		{filepath.Join(opt.Path, ".git"), "gitdir: " + opt.AdminDir + "\n"},
	} {
		if err := setFile(f.path, f.text); err != nil {
			return err
		}
	}
	for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer", "index.lock"} { // begun by the program
		if err := os.RemoveAll(filepath.Join(opt.AdminDir, name)); err != nil {
			return err
		}
	}
	for _, name := range operationFiles() {
		if err := os.Remove(filepath.Join(opt.AdminDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if opt.Index == "" {
			continue
		}
		if err := copySmall(filepath.Join(opt.Repo.GitDir, name), filepath.Join(opt.AdminDir, name)); err != nil {
			return err
		}
	}
	return opt.resetIndex(ctx)
}

func (opt ResetOptions) resetIndex(ctx context.Context) error {
	index := filepath.Join(opt.AdminDir, "index")
	if opt.Index != "" {
		x, err := git.ReadIndex(opt.Index, opt.Repo.ObjectFormat)
		switch {
		case err == nil && x.Len() > 0:
			if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return x.Write(index, func(int) git.IndexStat { return git.IndexStat{} })
		case err != nil && !errors.Is(err, git.ErrIndexCorrupt) && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil:
			err := errors.New("the copy of the index lacks its shared half (core.splitIndex), " +
				"so what was staged is unknown")
			return superqode.WithHint(err, "git -C %s reset", opt.Path)
		}
	}
	return opt.Repo.Run(ctx, git.Cmd{Dir: opt.AdminDir, Args: []string{"read-tree", opt.Head},
		Env: []string{"GIT_DIR=" + opt.AdminDir, "GIT_WORK_TREE=" + opt.Path}})
}

// setFile writes a small file unless it holds the text already.
func setFile(path, text string) error {
	if have, err := atomicfile.Read(path); err == nil && string(have) == text {
		return nil
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, []byte(text), 0o666)
}
