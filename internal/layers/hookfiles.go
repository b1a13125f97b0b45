package layers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/git"
)

// hooksHelper is the helper binary for the hooks, next to the links that lead to it.
const hooksHelper = "hooks/" + hooks.HelperFile

// FillHooks fills the folder of hooks of a session, or of what stands for one,
// and notes in its state how git is led there.
func (m *Machine) FillHooks(ctx context.Context, st *guard.SessionState, dir string, repo *git.Repo) error {
	folder := filepath.Join(dir, "hooks")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := m.linkHelper(dir, []string{hooksHelper, "bin/" + hooks.RemoteHelper, "exec/" +
		hooks.RemoteHelper}); err != nil {
		return err
	}
	if repo == nil {
		g, err := m.Git(ctx)
		if err != nil {
			return err
		}
		if repo = (&git.Repo{Git: g, TopLevel: folder}); len(st.GitDirs) > 0 {
			repo.TopLevel, repo.GitDir = "", string(st.GitDirs[0])
		}
	}
	config := func(ctx context.Context) (iter.Seq2[string, string], error) {
		c, err := repo.Config(ctx)
		if err != nil {
			return nil, err
		}
		return c.All(), nil
	}
	if err := hooks.Populate(ctx, st, hooks.Folder{Dir: folder, Helper: filepath.Join(dir, hooksHelper),
		Config: config}); err != nil {
		return err
	}
	st.HookEnv = hooks.Env(st, folder)
	return nil
}

// HookFiles are the files that the hooks stand on.
func HookFiles() []string {
	list := []string{hooksHelper}
	for _, name := range []string{"config", "config.core", "config.push", "fsmonitor", "reference-transaction",
		"prepare-commit-msg", "pre-push", "pre-rebase"} {
		list = append(list, "hooks/"+name)
	}
	return list
}

// tryHooks holds the hooks to what they promise when the shim is passed by: no
// commit, and no edit lost.
func (c *scratch) tryHooks(ctx context.Context) error {
	for _, args := range [][]string{
		{"commit", "--allow-empty", "--no-verify", "-m", "x"},
		{"reset", "--hard"},
	} {
		code, out, err := c.run(ctx, c.env, append([]string{c.git.Bin}, args...)...)
		if err == nil && code == 0 {
			err = errors.New("exit code 0")
		}
		if err = errors.Join(err, c.unchanged(ctx)); err != nil {
			return fmt.Errorf("%s git %s was not refused: %w: %.200q", c.git.Bin, strings.Join(args, " "), err, out)
		}
	}
	code, out, err := c.run(ctx, c.env, c.git.Bin, "status", "--porcelain")
	if err != nil || code != 0 || out != " M file\n" {
		return fmt.Errorf("git status did not work: exit code %d, %v: %.200q", code, err, out)
	}
	return nil
}
