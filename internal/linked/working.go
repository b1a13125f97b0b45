package linked

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// operationFiles show git status which operation is under way. Those of a
// rebase or a bisection stay behind: finishing one in the workspace would move
// the user's branches.
func operationFiles() []string {
	return []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"}
}

// fillWorking makes the workspace what the user sees now.
func (c *creation) fillWorking(ctx context.Context) error {
	if err := c.collectFacts(ctx); err != nil {
		return err
	}
	c.asStored = c.attrs.raw
	src, err := c.choose(ctx)
	if err != nil {
		return err
	}
	if err := c.copy(ctx, src); err != nil {
		return err
	}
	if err := c.copyNested(ctx); err != nil {
		return err
	}
	for _, name := range operationFiles() {
		if err := copySmall(filepath.Join(c.Repo.GitDir, name), filepath.Join(c.admin, name)); err != nil {
			return err
		}
	}
	if err := c.keepSparse(ctx); err != nil {
		return err
	}
	if err := failpoint.Err("worktree.index"); err != nil {
		return err
	}
	return c.writeIndex()
}

// copy brings src into the workspace. A tracked file that cannot be read is an
// error, since without it the workspace would not be what the user sees.
func (c *creation) copy(ctx context.Context, src *snapshot.Snapshot) error {
	if err := failpoint.Err("worktree.copy"); err != nil {
		return err
	}
	base, problems, err := treecopy.Copy(ctx, src, c.Path, treecopy.CopyOptions{Meter: c.Meter})
	if err != nil {
		return err
	}
	for _, p := range problems {
		_, tracked := c.index.Search(p.Path)
		if tracked && !errors.Is(p, snapshot.ErrChangedWhileRead) && !errors.Is(p, fs.ErrNotExist) {
			return fmt.Errorf("copy %s: %w", c.Repo.TopLevel, p)
		}
		c.warn("copying: %v", p)
	}
	c.base = base
	return failpoint.Err("worktree.copied")
}

// writeIndex writes the admin folder's index: the entries and extensions as they
// are, stat data of the copies where the contents are known to be what the entry
// names, zeros (git reads the file) elsewhere.
func (c *creation) writeIndex() error {
	from, to := c.origin.Entries, c.base.Entries
	o, b := 0, 0
	return c.index.Write(filepath.Join(c.admin, "index"), func(i int) git.IndexStat {
		ie := c.index.At(i)
		for o < len(from) && from[o].Path < ie.Path {
			o++
		}
		for b < len(to) && to[b].Path < ie.Path {
			b++
		}
		if b == len(to) || to[b].Path != ie.Path || ie.Stage != 0 || ie.IntentToAdd || !sameType(&ie, &to[b]) {
			return git.IndexStat{}
		}
		e := &to[b]
		vouched := o < len(from) && from[o].Path == ie.Path && c.facts[o].clean && sameContents(&from[o], e)
		if vouched || string(e.ID.Bytes()) == ie.OID && (e.Kind == snapshot.Link || c.asStored(string(e.Path))) {
			return indexStat(e)
		}
		return git.IndexStat{}
	})
}

// sameContents reports whether the copy is of the file that was scanned, and not
// of what took its place meanwhile.
func sameContents(from, to *snapshot.Entry) bool {
	return from.LooksCopied(to) && (from.ID.IsZero() || from.ID == to.ID)
}

// missing lists the entries of base whose contents no index entry names.
func (c *creation) missing() []snapshot.Entry {
	var list []snapshot.Entry
	at := cursor{Index: c.index}
	for i := range c.base.Entries {
		e := &c.base.Entries[i]
		if e.Kind != snapshot.File && e.Kind != snapshot.Link {
			continue
		}
		at.find(e.Path)
		known := false
		for k := at.pos; k < at.Len() && at.Path(k) == e.Path && !known; k++ {
			ie := c.index.At(k)
			known = ie.OID == string(e.ID.Bytes()) && !ie.IntentToAdd
		}
		if !known {
			list = append(list, *e)
		}
	}
	return list
}

// copyNested brings along the .git folders of nested repositories, as the plain
// trees that they are to this repository; they are no part of base. Submodules
// and .git files stay without: git in the workspace would act on the origin's
// modules through them.
func (c *creation) copyNested(ctx context.Context) error {
	for _, n := range c.nested {
		e := c.base.Find(n.path)
		if !n.isDir || e == nil || e.Kind != snapshot.Dir || c.inSubmodule(n.path) {
			continue
		}
		dotGit := n.path.Join(".git")
		from, to := dotGit.In(c.Repo.TopLevel), dotGit.In(c.Path)
		src, problems, err := snapshot.Scan(ctx, from,
			snapshot.ScanOptions{Format: c.Format, Contents: snapshot.StatOnly})
		if err != nil {
			return err
		}
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		_, more, err := treecopy.Copy(ctx, src, to, treecopy.CopyOptions{})
		if err != nil {
			return err
		}
		for _, p := range append(problems, more...) {
			c.warn("copying %s: %v", dotGit, p)
		}
	}
	return nil
}

// inSubmodule reports whether the index names dir, or a folder above it, as a
// submodule.
func (c *creation) inSubmodule(dir superqode.RelPath) bool {
	for ; dir != ""; dir = dir.Parent() {
		if i, ok := c.index.Search(dir); ok && c.index.At(i).Mode&modeType == modeLink {
			return true
		}
	}
	return false
}

// keepSparse copies what makes a sparse checkout sparse; git worktree add does so
// from 2.36 on.
func (c *creation) keepSparse(ctx context.Context) error {
	if !c.config.Bool("core.sparsecheckout", false) {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(c.admin, "info"), 0o777); err != nil {
		return err
	}
	if err := copySmall(filepath.Join(c.Repo.GitDir, "info/sparse-checkout"),
		filepath.Join(c.admin, "info/sparse-checkout")); err != nil {
		return err
	}
	own := filepath.Join(c.admin, "config.worktree")
	if _, err := os.Lstat(own); err == nil || !c.config.Bool("extensions.worktreeconfig", false) {
		return err
	}
	if err := copySmall(filepath.Join(c.Repo.GitDir, "config.worktree"), own); err != nil {
		return err
	}
	for _, key := range []string{"core.worktree", "core.bare"} { // they refer to the origin
		err := c.Repo.Run(ctx, git.Cmd{Dir: c.Path, Args: []string{"config", "--file", own, "--unset-all", key}})
		// 5: there was none
		if exit := (*git.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.Code == 5) {
			return err
		}
	}
	return nil
}

// copySmall copies a file of the git dir; it skips a missing one.
func copySmall(from, to string) error {
	data, err := atomicfile.ReadThrough(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o666)
}
