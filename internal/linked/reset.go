package linked

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

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
			return superqode.WithHint(errors.New("the copy of the index lacks its shared half (core.splitIndex), so what was staged is unknown"), "git -C %s reset", opt.Path)
		}
	}
	return opt.Repo.Run(ctx, git.Cmd{Dir: opt.AdminDir, Args: []string{"read-tree", opt.Head}, Env: []string{"GIT_DIR=" + opt.AdminDir, "GIT_WORK_TREE=" + opt.Path}})
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
