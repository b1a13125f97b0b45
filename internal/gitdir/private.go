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
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/rooted"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Needed reports whether git needs a git directory of the session's own: the
// kernel layer keeps the repository's read-only. The shim leads it there.
func Needed(s *site.Site, r state.GuardRecord) bool {
	if s.Rec.Overlay != nil { // the mount covers the repository's own
		return s.Rec.CommonDir != ""
	}
	return r.Shim == kernel.Active && s.Rec.GitReadOnly && mode.Of(s.Rec.Mode).WorkTree
}

// Private is the git directory of the session's own, where its programs see it: in its
// folder for what programs may write, or in an overlay in the place of the repository's.
func Private(s *site.Site) *guard.PrivateGit {
	p := &guard.PrivateGit{Dir: state.HostPath(filepath.Join(superqode.RealPrefix(s.Folder), "tmp", "git")), Repository: state.HostPath(Repository(s))}
	if s.Rec.Overlay != nil {
		p.Dir, p.Overlay, p.ObjectFormat = s.Rec.Overlay.At+"/.git", state.HostPath(s.Upper()), s.Rec.ObjectFormat
	}
	return p
}

// dirOf is where superqode reads it.
func dirOf(s *site.Site) string {
	if s.Rec.Overlay != nil {
		return filepath.Join(s.Upper(), ".git")
	}
	return string(Private(s).Dir)
}

// Repository is where a session's programs read the repository's own git directory.
// Where an overlay covers that, it is a folder in which the kernel layer shows it.
func Repository(s *site.Site) string {
	if s.Rec.Overlay != nil {
		return filepath.Join(superqode.RealPrefix(s.Folder), "tmp", "repository")
	}
	return superqode.RealPrefix(string(s.Rec.CommonDir))
}

// Make makes it before the first program: HEAD, index, refs and the state
// of a merge under way as the workspace has them, and an object store behind which
// the repository's own stands. HEAD comes last: with it the directory is whole. Of
// programs that start at once, one makes it, and makes it anew where one took it away.
func Make(ctx context.Context, s *site.Site) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !Needed(s, s.Rec.Guard) {
		return nil
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "git.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if hasHead(dirOf(s)) {
		return nil
	}
	made := filepath.Join(s.Folder, "git") // where no program writes
	err = os.RemoveAll(made)
	if err == nil {
		err = private(ctx, s, made)
	}
	if err == nil {
		err = place(ctx, s, made)
	}
	if err = errors.Join(err, os.RemoveAll(made)); err != nil {
		return fmt.Errorf("make the session's own git directory: %w", err)
	}
	return nil
}

// hasHead reports whether a git directory that a program could write to is there and whole.
func hasHead(dir string) bool {
	return atomicfile.ReadBelow(filepath.Dir(dir), filepath.Base(dir)+"/HEAD") != ""
}

// place copies what was made to where the programs have it.
func place(ctx context.Context, s *site.Site, made string) error {
	in, name := filepath.Join(s.Folder, "tmp"), "git"
	if s.Rec.Overlay != nil {
		m, err := s.Mount(ctx)
		if err != nil {
			return err
		}
		in, name = m.Dir(), ".git"
	}
	top, err := atomicfile.OpenRoot(in)
	if err != nil {
		return err
	}
	defer top.Close()
	dir, err := folder(top, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = errors.Join(os.Rename(filepath.Join(made, "HEAD"), filepath.Join(made, "HEAD.lock")), dir.RemoveAll("HEAD"))
	if err == nil {
		err = put(made, dir)
	}
	if err != nil {
		return err
	}
	return dir.Rename("HEAD.lock", "HEAD")
}

// put copies files and folders into one to which programs write, also now. Nothing of
// theirs leads it elsewhere: what is no folder, where one has to be, goes.
func put(from string, to *os.Root) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		src := filepath.Join(from, e.Name())
		if e.IsDir() {
			sub, err := folder(to, e.Name())
			if err == nil {
				err = errors.Join(put(src, sub), sub.Close())
			}
			if err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(src)
		if err = errors.Join(err, to.RemoveAll(e.Name())); err != nil {
			return err
		}
		f, err := to.OpenFile(e.Name(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// folder opens a folder in one to which programs write, and makes it where there is none.
func folder(in *os.Root, name string) (*os.Root, error) {
	if info, err := in.Lstat(name); err == nil && !info.IsDir() {
		if err := in.Remove(name); err != nil {
			return nil, err
		}
	}
	return rooted.Folder(in, name, true)
}

// private makes it in a folder.
func private(ctx context.Context, s *site.Site, dir string) error {
	repo, err := s.Repo(ctx)
	if err != nil {
		return err
	}
	if !mode.Of(s.Rec.Mode).InPlace && s.Rec.Overlay == nil {
		repo.GitDir = string(s.Rec.AdminDir)
	}
	c := &copied{Repo: repo, dir: dir, seen: Repository(s), head: s.Rec.Base.Head}
	if s.Rec.Overlay != nil {
		if c.base, err = s.LoadBase(); err == nil {
			c.origin, err = s.LoadOrigin()
		}
		if err != nil {
			return err
		}
		if taken := filepath.Join(s.Folder, "state"); atomicfile.Exists(taken) {
			c.taken = taken
		}
		if index := mode.CommitIndex(s); atomicfile.Exists(index) {
			c.index = index
		}
	}
	if c.identity, err = identity(ctx, s); err != nil {
		return err
	}
	if s.Rec.Overlay != nil { // the repository's may name another one, relative to its own place
		c.TopLevel = string(s.Rec.Inside())
		err = c.modules(ctx)
	} else {
		c.TopLevel = ""
	}
	return errors.Join(err, c.make(ctx))
}

// copied is a git directory that is made as one of the repository's is. TopLevel is its
// work tree, "" where git finds that by itself.
type copied struct {
	*git.Repo
	dir      string // what is made
	seen     string // where the session's programs read the common directory
	head     string // the commit at HEAD
	identity [][2]string

	origin, base *snapshot.Snapshot // of a work tree and its copy, for which the index is; nil: it is for the same files
	taken        string             // the work tree's index when it was copied; "": it is as it is now
	index        string             // the index with which a session begins that has a commit's files; "": it has the work tree's state
}

// make makes it.
func (c *copied) make(ctx context.Context) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info", "logs/refs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o700); err != nil {
			return err
		}
	}
	objects := filepath.Join(superqode.RealPrefix(c.CommonDir), "objects")
	others, err := store.Alternates(objects)
	if err != nil {
		return err
	}
	if seen := filepath.Join(c.seen, "objects"); seen != objects {
		_, more, _ := bytes.Cut(others, []byte("\n"))
		others = append([]byte(seen+"\n"), more...)
	}
	beyond, err := c.included(ctx)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"config": []byte(c.config(beyond)), "objects/info/alternates": others} {
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			return err
		}
	}
	err = errors.Join(copyRefs(ctx, c.Repo, c.dir), copyState(c.CommonDir, c.dir, isSharedState),
		copyState(filepath.Join(c.CommonDir, "info"), filepath.Join(c.dir, "info"), isAny))
	if c.GitDir != c.CommonDir {
		err = errors.Join(err, copyState(filepath.Join(c.GitDir, "info"), filepath.Join(c.dir, "info"), isAny))
	}
	if err != nil {
		return err
	}
	head := c.head + "\n"
	if c.index != "" {
		var data []byte
		if data, err = atomicfile.Read(c.index); err == nil {
			err = os.WriteFile(filepath.Join(c.dir, "index"), data, 0o600)
		}
	} else if err = c.copyWorkState(); err == nil && !c.moved(ctx) {
		head, err = headOf(ctx, c.Repo, c.GitDir, c.head)
	}
	if err != nil {
		return fmt.Errorf("read the workspace's HEAD and index: %w", err)
	}
	return os.WriteFile(filepath.Join(c.dir, "HEAD"), []byte(head), 0o600)
}

// moved reports whether the user committed, or went elsewhere, since the files were copied:
// the session stays at the commit that they belong to.
func (c *copied) moved(ctx context.Context) bool {
	if c.taken == "" || c.head == "" {
		return false
	}
	now, err := c.Head(ctx)
	return err != nil || now != c.head
}

// copyWorkState copies the index, and what a merge under way has left.
func (c *copied) copyWorkState() error {
	if err := copyState(c.GitDir, c.dir, isWorkState); err != nil {
		return err
	}
	index := cmp.Or(c.taken, filepath.Join(c.GitDir, "index"))
	if c.base == nil || !atomicfile.Exists(index) {
		return nil
	}
	return linked.CopyIndex(index, filepath.Join(c.dir, "index"), c.ObjectFormat, hooks.MonitorToken, c.origin, c.base)
}

// modules makes the git directories of submodules, which lie in the repository's.
func (c *copied) modules(ctx context.Context) error {
	top := filepath.Join(c.GitDir, "modules")
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // without one, or with one that cannot be read, there are no submodules
		}
		if !atomicfile.Exists(filepath.Join(path, "HEAD")) || !atomicfile.Exists(filepath.Join(path, "objects")) {
			return nil
		}
		rel, err := filepath.Rel(c.GitDir, path)
		if err != nil {
			return err
		}
		out, err := c.Output(ctx, git.Cmd{Args: []string{"config", "--file", filepath.Join(path, "config"), "core.worktree"}})
		if err != nil && ctx.Err() != nil {
			return err
		}
		m := &copied{Repo: &git.Repo{Git: c.Git, GitDir: path, CommonDir: path, ObjectFormat: c.ObjectFormat},
			dir: filepath.Join(c.dir, rel), seen: filepath.Join(c.seen, rel), identity: c.identity}
		if tree := strings.TrimSuffix(string(out), "\n"); tree != "" {
			m.TopLevel = superqode.Under(path, tree)
		}
		if err := errors.Join(m.modules(ctx), m.make(ctx)); err != nil {
			return err
		}
		return fs.SkipDir
	})
}

// config is the configuration of the session's own git directory: the
// repository's, by way of an include, so that what git looks for in the file itself
// (the format of refs, configuration for each work tree) is the session's own. beyond is
// included as well.
func (c *copied) config(beyond []string) string {
	var b strings.Builder
	version, extensions := "0", ""
	if c.ObjectFormat != "" && c.ObjectFormat != "sha1" {
		version, extensions = "1", "[extensions]\n\tobjectFormat = "+c.ObjectFormat+"\n"
	}
	for _, e := range c.identity {
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
	for _, file := range []string{filepath.Join(c.CommonDir, "config"), filepath.Join(c.GitDir, "config.worktree")} {
		if rel, err := filepath.Rel(c.CommonDir, file); err == nil && atomicfile.Exists(file) {
			fmt.Fprintf(&b, "[include]\n\tpath = %s\n", git.QuoteConfig(filepath.Join(c.seen, rel)))
		}
	}
	for _, file := range beyond {
		fmt.Fprintf(&b, "[include]\n\tpath = %s\n", git.QuoteConfig(file))
	}
	if c.TopLevel != "" {
		fmt.Fprintf(&b, "[core]\n\tworktree = %s\n", git.QuoteConfig(c.TopLevel))
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %s\n\tbare = false\n\tlogAllRefUpdates = true\n%s",
		version, extensions)
	return b.String()
}

// included returns the files that the repository's configuration includes by paths that
// lead out of its folder, and elsewhere from where the session's programs read it.
func (c *copied) included(ctx context.Context) (list []string, err error) {
	file := filepath.Join(c.CommonDir, "config")
	data, rerr := os.ReadFile(file)
	if rerr != nil || c.seen == superqode.RealPrefix(c.CommonDir) || !bytes.Contains(bytes.ToLower(data), []byte("[include]")) {
		return nil, nil // without one nothing is included
	}
	out, err := c.Output(ctx, git.Cmd{Args: []string{"config", "--file", file, "-z", "--get-all", "include.path"}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return nil, nil // none
	}
	for path := range strings.SplitSeq(string(out), "\x00") {
		if strings.HasPrefix(path, "../") {
			list = append(list, filepath.Join(c.CommonDir, path))
		}
	}
	return list, err
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
