package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

// CheckApplyOptions says which patch is tried on which tree.
type CheckApplyOptions struct {
	Commit  string // a commit of the store, or a ref
	Patch   []byte // in git's format
	Scratch string // a private folder for the index
}

// index runs git in the store on an index in the scratch folder.
func (s *Store) index(ctx context.Context, opt CheckApplyOptions, in []byte, args ...string) (string, error) {
	var out bytes.Buffer
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(opt.Scratch, "index")}
	err := s.run(ctx, git.Cmd{Args: args, Env: env, Stdin: bytes.NewReader(in), Stdout: &out})
	return out.String(), err
}

// CheckApply asks git whether a patch applies to a commit's tree, and returns
// git's reason when it does not. Nothing but the scratch folder is written.
func (s *Store) CheckApply(ctx context.Context, opt CheckApplyOptions) (why string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(opt.Patch)) == 0 {
		return "the patch is empty", nil
	}
	if _, err := s.index(ctx, opt, nil, "read-tree", opt.Commit); err != nil {
		return "", err
	}
	_, err = s.index(ctx, opt, opt.Patch, "apply", "--check", "--cached", "--whitespace=nowarn", "-")
	if exit, ok := errors.AsType[*git.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(exit.Stderr), "\n")
		return strings.TrimPrefix(strings.Join(lines[:min(len(lines), 3)], "; "), "error: "), nil
	}
	return "", err
}

// Checkout writes a commit's tree into the directory dir, with the patch applied
// where there is one. What stood there as the tree of from and is in the new tree
// no more is removed; other files stay. The directory is nobody's but the
// caller's: git looks at nothing in it.
func (s *Store) Checkout(ctx context.Context, opt CheckApplyOptions, dir, from string) error {
	if _, err := s.index(ctx, opt, nil, "read-tree", opt.Commit); err != nil {
		return err
	}
	if len(opt.Patch) > 0 {
		if _, err := s.index(ctx, opt, opt.Patch, "apply", "--cached", "--whitespace=nowarn", "-"); err != nil {
			return fmt.Errorf("apply the patch: %w", err)
		}
	}
	if from != "" {
		gone, err := s.index(ctx, opt, nil, "diff-index", "--cached", "--no-renames", "--diff-filter=D", "--name-only", "-z", from)
		if err != nil {
			return err
		}
		if err := removeAll(dir, strings.Split(strings.TrimSuffix(gone, "\x00"), "\x00")); err != nil {
			return err
		}
	}
	_, err := s.index(ctx, opt, nil, "--work-tree="+dir, "checkout-index", "--all", "--force", "--quiet")
	return err
}

// removeAll removes files below dir; no link leads out of it.
func removeAll(dir string, names []string) error {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if name == "" {
			continue
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
