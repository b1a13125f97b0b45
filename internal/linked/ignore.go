package linked

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/ignore"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// IncludeFile in the origin names ignored files that come along.
const IncludeFile = ".worktreeinclude"

// judge answers for an untracked path.
type judge func(path superqode.RelPath, isDir bool) bool

// ignores returns what answers whether git ignores a path of the origin. In a sparse checkout git may read a
// .gitignore from the index; there it lists all ignored paths.
func (c *creation) ignores(ctx context.Context) (judge, error) {
	if c.hasSparseIgnore() {
		args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}
		out, err := c.Repo.Output(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args})
		set := map[superqode.RelPath]bool{}
		for p := range strings.SplitSeq(string(out), "\x00") {
			set[superqode.RelPath(strings.TrimSuffix(p, "/"))] = true
		}
		return func(path superqode.RelPath, _ bool) bool { return set[path] }, err
	}
	tree, err := IgnoreTree(ctx, c.Repo, c.Repo.TopLevel)
	if err != nil {
		return nil, err
	}
	return tree.Ignored, nil
}

// IgnoreTree returns what git ignores in a work tree of a repository. Where that is
// gone, only the work tree says it.
func IgnoreTree(ctx context.Context, repo *git.Repo, dir string) (*ignore.Tree, error) {
	var outside []ignore.Patterns
	fold := false
	if atomicfile.Exists(repo.TopLevel) && atomicfile.Exists(repo.CommonDir) {
		config, err := repo.Config(ctx)
		if err != nil {
			return nil, err
		}
		user, err := globalFile(ctx, repo, "core.excludesfile", "ignore")
		if err != nil {
			return nil, err
		}
		fold = config.Bool("core.ignorecase", false)
		outside = []ignore.Patterns{ignore.ReadThrough(filepath.Join(repo.CommonDir, "info", "exclude"), fold), ignore.ReadThrough(user, fold)}
	}
	read := func(folder superqode.RelPath) ignore.Patterns {
		return ignore.Read(folder.Join(ignore.File).In(dir), fold)
	}
	return ignore.NewTree(read, outside...), nil
}

// hasSparseIgnore reports whether git reads a .gitignore from the index.
func (c *creation) hasSparseIgnore() bool {
	if !c.config.Bool("core.sparsecheckout", false) {
		return false
	}
	for i := range c.index.Len() {
		if c.index.Path(i).Name() == ignore.File && c.index.At(i).SkipWorktree {
			return true
		}
	}
	return false
}

// includes returns what answers whether .worktreeinclude or the caller names a path;
// nil if they name none.
func (c *creation) includes() judge {
	return Includes(c.Repo.TopLevel, c.Include, c.config.Bool("core.ignorecase", false))
}

// Includes returns what answers whether the patterns, or those in a work tree's
// .worktreeinclude, name a path; nil if there are none.
func Includes(top string, patterns []string, fold bool) func(path superqode.RelPath, isDir bool) bool {
	named := []ignore.Patterns{
		ignore.Parse([]byte(strings.Join(patterns, "\n")), fold),
		ignore.ReadThrough(filepath.Join(top, IncludeFile), fold),
	}
	if len(named[0])+len(named[1]) == 0 {
		return nil
	}
	return ignore.NewTree(func(superqode.RelPath) ignore.Patterns { return nil }, named...).Ignored
}

// IgnoredIn returns the topmost paths of a snapshot that git ignores and does not track,
// sorted; a folder covers everything in it.
func IgnoredIn(sn *snapshot.Snapshot, index *git.Index, tree *ignore.Tree) (list []superqode.RelPath) {
	top := superqode.RelPath("")
	for i := range sn.Entries {
		e := &sn.Entries[i]
		if top != "" && superqode.Within(e.Path, top) {
			continue
		}
		_, tracked := index.Search(e.Path)
		if e.Kind == snapshot.Dir {
			_, tracked = index.SearchDir(e.Path)
		}
		if !tracked && tree.Ignored(e.Path, e.Kind == snapshot.Dir) {
			list, top = append(list, e.Path), e.Path
		}
	}
	return list
}
