package linked

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// fillCommit makes the workspace the clean tree of HEAD: it copies what the
// origin's work tree has exactly as in the commit, and git checks out the rest.
// In a sparse checkout git does it all.
func (c *creation) fillCommit(ctx context.Context) error {
	if c.config.Bool("core.sparsecheckout", false) {
		if err := c.keepSparse(ctx); err != nil {
			return err
		}
		return c.checkout(ctx)
	}
	if err := c.collectFacts(ctx); err != nil {
		return err
	}
	if err := c.Repo.Run(ctx, git.Cmd{Dir: c.Path, Args: []string{"read-tree", c.Head}}); err != nil {
		return err
	}
	wanted, err := c.readIndex()
	if err != nil {
		return err
	}
	// The commit's attributes files may differ from the work tree's in eol and
	// filters; then only links are copied.
	c.attrs.out.all = c.attrs.out.all || c.attributesDiffer(wanted)
	c.asStored = c.attrs.plain
	src := c.unmodified(wanted)
	c.index, c.facts = wanted, make([]fact, len(c.origin.Entries))
	if err := c.copy(ctx, src); err != nil {
		return err
	}
	if err := c.dropConverted(); err != nil {
		return err
	}
	if err := c.writeIndex(); err != nil {
		return err
	}
	if c.complete() {
		return nil
	}
	return c.checkout(ctx)
}

func (c *creation) readIndex() (*git.Index, error) {
	return git.ReadIndex(filepath.Join(c.admin, "index"), c.Repo.ObjectFormat)
}

// attributesDiffer reports whether an attributes file is not the same in the
// commit as in the origin's work tree.
func (c *creation) attributesDiffer(wanted *git.Index) bool {
	for _, ie := range wanted.Entries() {
		if _, ok := attributesDir(ie.Path); !ok {
			continue
		}
		if e := c.origin.Find(ie.Path); e == nil || e.Kind != snapshot.File || !c.named(ie.Path, ie.OID) {
			return true
		}
	}
	for i := range c.origin.Entries {
		e := &c.origin.Entries[i]
		if _, ok := attributesDir(e.Path); !ok {
			continue
		}
		if _, ok := wanted.Search(e.Path); !ok {
			return true
		}
	}
	return false
}

// named reports whether the origin's index confirms that the file at path is
// the checked-out blob oid.
func (c *creation) named(path superqode.RelPath, oid string) bool {
	i, ok := findEntry(c.origin.Entries, path)
	return ok && c.facts[i].clean && c.index.At(int(c.facts[i].pos)).OID == oid
}

// dropConverted deletes the copies whose bytes are not those of the blob: the
// origin's index calls them clean only after a conversion (CRLF that git would
// store as LF), and a checkout would write other bytes.
func (c *creation) dropConverted() error {
	at := cursor{Index: c.index}
	kept := c.base.Entries[:0]
	for _, e := range c.base.Entries {
		if found := at.find(e.Path); e.Kind == snapshot.File && (!found || at.At(at.pos).OID != string(e.ID.Bytes())) {
			if err := os.Remove(e.Path.In(c.Path)); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, e)
	}
	c.base.Entries = kept
	return nil
}

// unmodified returns the files of the origin that are, by its index, what the
// commit has at their paths, and the folders above them.
func (c *creation) unmodified(wanted *git.Index) *snapshot.Snapshot {
	ch := newChooser(c)
	at := cursor{Index: wanted}
	for i := range ch.entries {
		e := &ch.entries[i]
		if !at.find(e.Path) {
			continue
		}
		switch ie := wanted.At(at.pos); {
		case ie.Mode&modeType == modeLink && e.Kind == snapshot.Dir:
			ch.keep[i] = kept // an empty folder, as git makes for a submodule
		case !sameType(&ie, e) || !c.facts[i].clean || c.index.At(int(c.facts[i].pos)).OID != ie.OID:
		case e.Kind == snapshot.Link,
			c.attrs.plain(string(e.Path)) && plainMode(e.Perm) && ie.Mode&0o100 == e.Perm&0o100:
			ch.keep[i] = kept
		}
	}
	ch.parents()
	return ch.chosen()
}

// plainMode reports whether permission bits are those that git gives to files.
func plainMode(perm uint32) bool {
	return perm&0o7600 == 0o600
}

// complete reports whether base holds every entry of the index.
func (c *creation) complete() bool {
	for i := range c.index.Len() {
		if c.base.Find(c.index.Path(i)) == nil {
			return false
		}
	}
	return true
}

// checkout lets git write what is missing, and checks the result. It downloads
// nothing.
func (c *creation) checkout(ctx context.Context) error {
	if err := failpoint.Err("worktree.checkout"); err != nil {
		return err
	}
	err := c.Repo.Run(ctx, git.Cmd{
		Dir: c.Path, Args: []string{"-c", "submodule.recurse=false", "reset", "--hard", "--quiet"},
		Env: []string{"GIT_LFS_SKIP_SMUDGE=1"},
	})
	if err != nil {
		return err
	}
	if c.index, err = c.readIndex(); err != nil {
		return err
	}
	skip := func(p superqode.RelPath, _ snapshot.Kind) bool { return isDotGit(p.Name()) }
	opt := snapshot.ScanOptions{Format: c.Format, Skip: skip}
	if c.base != nil {
		opt.Known = copies{c.base}
	}
	base, problems, err := snapshot.Scan(ctx, c.Path, opt)
	for _, p := range problems {
		err = errors.Join(err, fmt.Errorf("read the workspace: %w", p))
	}
	c.base = base
	return err
}

// copies returns content ids of files that were copied a moment ago. No program
// has run in the workspace since, so equal stat data mean the same file,
// however young it is.
type copies struct{ made *snapshot.Snapshot }

// Lookup returns the id of the copy at path when e is that copy.
func (k copies) Lookup(path superqode.RelPath, e *snapshot.Entry) (snapshot.ID, bool) {
	was := k.made.Find(path)
	if was == nil || was.Kind != e.Kind || was.Size != e.Size || was.Stat != e.Stat {
		return snapshot.ID{}, false
	}
	return was.ID, true
}
