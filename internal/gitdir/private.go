// Package gitdir keeps a git directory of a session's own, and the commits that the
// session's programs make.
//
// Where the kernel layer keeps the repository's git directory read-only, the shim leads
// git to one in the session's folder: HEAD, index, refs and the state of a merge as the
// workspace had them, and an object store behind which the repository's own stands. A
// session whose policy lets commits through makes them there or, without the kernel
// layer, on the HEAD of its linked worktree. Before either goes, KeepCommits copies what
// is new of them into the store, whole, under refs/superqode/<session>/commits, and
// Collect writes it down as a series of mails. Nothing here runs git in a folder that
// the program could write to: its HEAD is read, and its objects are looked at from the
// store, which checks them.
package gitdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Needed reports whether git needs a git directory of the session's own: the
// kernel layer keeps the repository's read-only. The shim leads it there.
func Needed(s *site.Site, r state.GuardRecord) bool {
	return r.Shim == kernel.Active && s.Rec.GitReadOnly && mode.Of(s.Rec.Mode).WorkTree
}

// Private is the git directory of the session's own, in its folder for what programs
// may write.
func Private(s *site.Site) *guard.PrivateGit {
	return &guard.PrivateGit{Dir: state.HostPath(filepath.Join(superqode.RealPrefix(s.Folder), "tmp", "git"))}
}

// Make makes it before the first program: HEAD, index, refs and the state
// of a merge under way as the workspace has them, and an object store behind which
// the repository's own stands. HEAD comes last: with it the directory is whole.
func Make(ctx context.Context, s *site.Site) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !Needed(s, s.Rec.Guard) {
		return nil
	}
	dir := string(Private(s).Dir)
	if atomicfile.Exists(filepath.Join(dir, "HEAD")) {
		return nil
	}
	gitDir, common := string(s.Rec.AdminDir), string(s.Rec.CommonDir)
	if mode.Of(s.Rec.Mode).InPlace {
		gitDir = string(s.Rec.GitDir)
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info", "logs/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	text, err := config(ctx, s, gitDir)
	if err != nil {
		return err
	}
	others, err := store.Alternates(filepath.Join(superqode.RealPrefix(common), "objects"))
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"config": []byte(text), "objects/info/alternates": others} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(copyRefs(ctx, repo, dir), copyState(common, dir, isSharedState),
		copyState(filepath.Join(common, "info"), filepath.Join(dir, "info"), isAny))
	if gitDir != common {
		err = errors.Join(err, copyState(filepath.Join(gitDir, "info"), filepath.Join(dir, "info"), isAny))
	}
	if err = errors.Join(err, copyState(gitDir, dir, isWorkState)); err != nil {
		return fmt.Errorf("make the session's own git directory: %w", err)
	}
	head, err := headOf(ctx, repo, gitDir, s.Rec.Base.Head)
	if err != nil {
		return fmt.Errorf("read the workspace's HEAD: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "HEAD"), []byte(head), 0o600)
}

// config is the configuration of the session's own git directory: the
// repository's, by way of an include, so that what git looks for in the file itself
// (the format of refs, configuration for each work tree) is the session's own.
func config(ctx context.Context, s *site.Site, gitDir string) (string, error) {
	var b strings.Builder
	version, extensions := "0", ""
	if s.Rec.ObjectFormat != "" && s.Rec.ObjectFormat != "sha1" {
		version, extensions = "1", "[extensions]\n\tobjectFormat = "+s.Rec.ObjectFormat+"\n"
	}
	identity, err := identity(ctx, s)
	if err != nil {
		return "", err
	}
	for _, e := range identity {
		section, name := e[0], ""
		if i := strings.LastIndexByte(e[0], '.'); i > 0 {
			section, name = e[0][:i], e[0][i+1:]
		}
		first, sub, _ := strings.Cut(section, ".")
		if sub != "" {
			section = first + ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, git.QuoteConfig(e[1]))
	}
	for _, file := range []string{filepath.Join(string(s.Rec.CommonDir), "config"),
		filepath.Join(gitDir, "config.worktree")} {
		if atomicfile.Exists(file) {
			fmt.Fprintf(&b, "[include]\n\tpath = %s\n", git.QuoteConfig(file))
		}
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %s\n\tbare = false\n\tlogAllRefUpdates = true\n%s",
		version, extensions)
	return b.String(), nil
}

// identity returns, as keys and values, who the user is in the origin, where that
// may depend on the place of the git directory (includeIf): the session's own lies
// elsewhere.
func identity(ctx context.Context, s *site.Site) ([][2]string, error) {
	conditional := false
	for _, file := range append(git.UserConfig(s.Env), "/etc/gitconfig") {
		data, err := os.ReadFile(file)
		conditional = conditional || err == nil && strings.Contains(strings.ToLower(string(data)), "[includeif")
	}
	if !conditional {
		return nil, nil
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return nil, err
	}
	out, err := repo.Output(ctx, git.Cmd{Dir: repo.TopLevel, Args: []string{"config", "-z", "--get-regexp", `^(user|author|committer|gpg|commit|tag)\.`}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return nil, nil // none
	}
	if err != nil {
		return nil, err
	}
	var list [][2]string
	for item := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(item, "\n"); ok {
			list = append(list, [2]string{key, value})
		}
	}
	return list, nil
}

func isAny(string, fs.DirEntry) bool { return true }

// isSharedState picks what of a common git directory's own files a session sees.
func isSharedState(name string, d fs.DirEntry) bool { return d.Type().IsRegular() && name == "shallow" }

// isWorkState picks what of a work tree's git directory is its state: the index,
// and what a merge, a rebase or a bisection under way has left.
func isWorkState(name string, d fs.DirEntry) bool {
	switch {
	case strings.HasSuffix(name, ".lock"):
		return false
	case d.IsDir():
		return name == "rebase-merge" || name == "rebase-apply" || name == "sequencer"
	case !d.Type().IsRegular():
		return false
	case name == "index" || strings.HasPrefix(name, "sharedindex."):
		return true
	}
	return strings.ToUpper(name) == name && name != "HEAD"
}

// copyState copies the entries of a folder that pick names, folders whole.
func copyState(from, to string, pick func(string, fs.DirEntry) bool) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case !pick(e.Name(), e):
		case e.IsDir():
			err = errors.Join(err, os.MkdirAll(dst, 0o700), copyState(src, dst, isAny))
		case e.Type().IsRegular():
			data, rerr := atomicfile.Read(src)
			if rerr == nil {
				rerr = os.WriteFile(dst, data, 0o600)
			}
			if !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
	}
	return err
}
