package snapshot

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// CheckApplyOptions says which patch is tried on which tree.
type CheckApplyOptions struct {
	Commit  string // a commit of the store, or a ref
	Patch   []byte // in git's format
	Scratch string // an empty folder for the index
}

// CheckApply asks git whether a patch applies to a commit's tree, and returns
// git's reason when it does not. Nothing but the scratch folder is written.
func (s *Store) CheckApply(ctx context.Context, opt CheckApplyOptions) (why string, err error) {
	if len(bytes.TrimSpace(opt.Patch)) == 0 {
		return "the patch is empty", nil
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(opt.Scratch, "index")}
	if err := s.run(ctx, git.Cmd{Args: []string{"read-tree", opt.Commit}, Env: env}); err != nil {
		return "", err
	}
	err = s.run(ctx, git.Cmd{Args: []string{"apply", "--check", "--cached", "--whitespace=nowarn", "-"}, Env: env, Stdin: bytes.NewReader(opt.Patch)})
	if exit, ok := errors.AsType[*git.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(exit.Stderr), "\n")
		return strings.TrimPrefix(strings.Join(lines[:min(len(lines), 3)], "; "), "error: "), nil
	}
	return "", err
}
