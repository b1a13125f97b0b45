package linked

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// ownFolder is superqode's folder in an origin. It is no part of a workspace.
const ownFolder = ".superqode"

// clockTick is how far a file's time may lag behind the moment of the write: a
// little more than one tick of the slowest kernel clock (100 Hz).
const clockTick = 20 * time.Millisecond

// nestedRepo is a folder below the origin that holds a .git of its own.
type nestedRepo struct {
	path  superqode.RelPath
	isDir bool // its .git is a folder; otherwise it is a file that names one
}

// readOwnIndex reads the origin's index and checks it: a damaged one would look
// intact once rewritten with a valid checksum.
func (c *creation) readOwnIndex() (err error) {
	name := filepath.Join(c.Repo.GitDir, "index")
	if c.index, err = git.ReadIndex(name, c.Repo.ObjectFormat); err != nil {
		return err
	}
	if err := c.index.Verify(); err != nil {
		return superqode.WithHint(fmt.Errorf("%s: %w", name, err), "git -C %s fsck", c.Repo.TopLevel)
	}
	return nil
}

// read reads the origin's configuration, index and work tree in goroutines of g.
// inPlace is for a session that works in the origin itself: nested repositories and
// submodules are plain trees there, their .git included. previous is an earlier
// look, if there was one.
func (c *creation) read(ctx context.Context, g *errgroup.Group, inPlace bool, previous *snapshot.Snapshot) {
	g.Go(func() (err error) {
		c.config, err = c.Repo.Config(ctx)
		return err
	})
	g.Go(c.readOwnIndex)
	g.Go(func() error { return c.scan(ctx, inPlace, previous) })
}

// scan lists the origin's work tree, once, without reading any file's contents.
func (c *creation) scan(ctx context.Context, inPlace bool, previous *snapshot.Snapshot) (err error) {
	var mu sync.Mutex
	skip := func(p superqode.RelPath, kind snapshot.Kind) bool {
		if !isDotGit(p.Name()) {
			return p == ownFolder
		}
		if dir := p.Parent(); dir != "" {
			mu.Lock()
			c.nested = append(c.nested, nestedRepo{dir, kind == snapshot.Dir})
			mu.Unlock()
		}
		return !inPlace || SkipInPlace(p, kind)
	}
	opt := snapshot.ScanOptions{Format: c.Format, Previous: previous, Contents: snapshot.StatOnly, Skip: skip}
	c.origin, c.problems, err = snapshot.Scan(ctx, c.Repo.TopLevel, opt)
	slices.SortFunc(c.nested, func(a, b nestedRepo) int { return cmp.Compare(a.path, b.path) })
	return err
}

// SkipInPlace leaves superqode's own folder and the repository itself out of a
// work tree's snapshot. A .git file is part of it.
func SkipInPlace(p superqode.RelPath, kind snapshot.Kind) bool {
	return p == ownFolder || kind == snapshot.Dir && p == ".git"
}

// isDotGit reports whether a name may be .git on some file system; none of these
// is ever a tracked file's name.
func isDotGit(name string) bool { return len(name) == 4 && strings.EqualFold(name, ".git") }

// tell makes an error of a tracked file that could not be read, since a
// workspace without it would show it as deleted; the rest is a warning.
func (c *creation) tell() error {
	for _, p := range c.problems {
		_, tracked := c.index.Search(p.Path)
		if _, below := c.index.SearchDir(p.Path); tracked || below || p.Path == "" {
			err := fmt.Errorf("read %s: %w", c.Repo.TopLevel, p)
			return superqode.WithHint(err, "make it readable, or use --from HEAD")
		}
		c.warn("left out: %v", p)
	}
	return nil
}

// fact is what the index says about one entry of the origin.
type fact struct {
	pos   int32 // of its entry in the index, the first of an unmerged path; -1 for none
	clean bool  // the index confirms that the contents are those it names, as git status would see it
}

// collectFacts joins the scan with the index, both sorted by the same order, and
// fills in the content ids that the index knows.
func (c *creation) collectFacts(ctx context.Context) (err error) {
	if c.attrs, err = readAttributes(ctx, c.Repo, c.config, c.origin, c.index); err != nil {
		return err
	}
	x, entries := c.index, c.origin.Entries
	c.facts = make([]fact, len(entries))
	cutoff := x.ModTime.Add(-clockTick).UnixNano()
	at := cursor{Index: x}
	for i := range entries {
		e := &entries[i]
		if c.facts[i].pos = -1; !at.find(e.Path) {
			continue
		}
		c.facts[i].pos = int32(at.pos)
		ie := x.At(at.pos)
		if !isClean(&ie, e, cutoff) {
			continue
		}
		c.facts[i].clean = true
		if e.Kind == snapshot.Link || c.attrs.raw(string(e.Path)) {
			e.ID = snapshot.IDFrom([]byte(ie.OID))
		}
	}
	return nil
}

// cursor walks an index beside a list in the same order.
type cursor struct {
	*git.Index
	pos int
}

// find moves on to a path and reports whether the index has it.
func (c *cursor) find(path superqode.RelPath) bool {
	for c.pos < c.Len() && c.Path(c.pos) < path {
		c.pos++
	}
	return c.pos < c.Len() && c.Path(c.pos) == path
}

// The file types of an index entry.
const (
	modeType   = 0o170000
	modeFile   = 0o100000
	modeSym    = 0o120000
	modeLink   = 0o160000 // a submodule
	modeSparse = 0o040000
)

// isClean reports whether the index entry's stat data are the file's and can be
// trusted: both times are before the cutoff, a tick before the index was
// written. git compares whole seconds and reads the files of the last second
// again; with nanoseconds there are fewer of them.
func isClean(ie *git.IndexEntry, e *snapshot.Entry, cutoff int64) bool {
	if ie.Stage != 0 || ie.IntentToAdd || !sameType(ie, e) || e.Stat.Mtime >= cutoff || e.Stat.Ctime >= cutoff {
		return false
	}
	st := indexStat(e)
	st.Dev = ie.Stat.Dev // git ignores it: device numbers change over a reboot
	return st == ie.Stat
}

// CopyIndex writes the index of a work tree anew for an exact copy of that: stat data of
// the copies where the index vouches for the originals, zeros (git reads the file)
// elsewhere. origin and base are the snapshots of both. Without an origin, the index is
// that of a commit, and vouches for what has the commit's bytes. token is what git asks a
// monitor of the copy with, see git.Index.WriteMonitored; "" for none.
func CopyIndex(from, to, format, token string, origin, base *snapshot.Snapshot) error {
	x, err := git.ReadIndex(from, format)
	if err != nil {
		return err
	}
	cutoff := x.ModTime.Add(-clockTick).UnixNano()
	var o, b entries = nil, base.Entries
	if origin != nil {
		o = origin.Entries
	}
	return x.WriteMonitored(to, token, func(i int) (git.IndexStat, bool) {
		ie := x.At(i)
		was, is := o.at(ie.Path), b.at(ie.Path)
		switch {
		case is == nil,
			origin == nil && !Holds(&ie, is),
			origin != nil && (was == nil || !isClean(&ie, was, cutoff) || !sameContents(was, is)):
			return git.IndexStat{}, false
		}
		return indexStat(is), asNamed(&ie, is)
	})
}

// asNamed reports whether e is of the kind and mode that an index entry names, whatever
// core.fileMode and core.symlinks say.
func asNamed(ie *git.IndexEntry, e *snapshot.Entry) bool {
	switch {
	case !IsFile(ie) || ie.IntentToAdd || ie.AssumeValid:
		return false
	case e.Kind == snapshot.Link:
		return ie.Mode&modeType == modeSym
	}
	return ie.Mode&modeType == modeFile && e.Kind == snapshot.File && (ie.Mode^e.Perm)&0o100 == 0
}

// IsFile reports whether an index entry stands for a file or link of the work tree.
func IsFile(ie *git.IndexEntry) bool {
	kind := ie.Mode & modeType
	return ie.Stage == 0 && !ie.SkipWorktree && (kind == modeFile || kind == modeSym)
}

// Holds reports whether e has the bytes that an index entry names.
func Holds(ie *git.IndexEntry, e *snapshot.Entry) bool {
	return IsFile(ie) && sameType(ie, e) && string(e.ID.Bytes()) == ie.OID && (e.Kind != snapshot.File || (ie.Mode^e.Perm)&0o100 == 0)
}

// entries is what is left of a sorted list.
type entries []snapshot.Entry

// at returns the entry at a path, or nil. Each path comes after the one before.
func (l *entries) at(path superqode.RelPath) *snapshot.Entry {
	for len(*l) > 0 && (*l)[0].Path < path {
		*l = (*l)[1:]
	}
	if len(*l) > 0 && (*l)[0].Path == path {
		return &(*l)[0]
	}
	return nil
}

func sameType(ie *git.IndexEntry, e *snapshot.Entry) bool {
	switch ie.Mode & modeType {
	case modeFile:
		return e.Kind == snapshot.File
	case modeSym:
		return e.Kind == snapshot.Link || e.Kind == snapshot.File // with core.symlinks=false links are files
	}
	return false
}

// indexStat cuts an entry's stat data to what the index keeps.
func indexStat(e *snapshot.Entry) git.IndexStat {
	s := &e.Stat
	st := git.IndexStat{Dev: uint32(s.Dev), Ino: uint32(s.Ino), UID: s.UID, GID: s.GID, Size: uint32(e.Size)}
	st.CtimeSec, st.CtimeNsec = splitTime(s.Ctime)
	st.MtimeSec, st.MtimeNsec = splitTime(s.Mtime)
	return st
}

// splitTime turns nanoseconds into seconds and the rest, which is never
// negative, also before 1970.
func splitTime(ns int64) (sec, nsec uint32) {
	s, rest := ns/1e9, ns%1e9
	if rest < 0 {
		s, rest = s-1, rest+1e9
	}
	return uint32(s), uint32(rest)
}

// below returns the range of entries in the folder dir.
func below(entries []snapshot.Entry, dir superqode.RelPath) (lo, hi int) {
	lo = sort.Search(len(entries), func(i int) bool { return cmpBelow(entries[i].Path, dir) >= 0 })
	hi = lo + sort.Search(len(entries)-lo, func(i int) bool { return cmpBelow(entries[lo+i].Path, dir) > 0 })
	return lo, hi
}

// cmpBelow reports whether p sorts before (-1), among (0) or after (1) the
// paths in the folder dir.
func cmpBelow(p, dir superqode.RelPath) int {
	if len(p) <= len(dir) || p[:len(dir)] != dir {
		if p <= dir {
			return -1
		}
		return 1
	}
	return cmp.Compare(p[len(dir)], '/')
}

// Survey is what a repository's work tree holds, for sessions that work in it.
type Survey struct {
	// Tree is everything but the repository's own .git folder and .superqode, with ids
	// where the index, or the earlier look, confirms them.
	Tree     *snapshot.Snapshot
	Ignored  []superqode.RelPath // the topmost paths that git ignores, sorted; a folder covers everything in it
	Problems []snapshot.Problem  // what could not be read
	index    *git.Index
}

// Look surveys the work tree of a repository without changing anything. previous
// is an earlier survey's tree, nil for none. Nested repositories and submodules
// are plain trees here, their .git included.
func Look(ctx context.Context, repo *git.Repo, format snapshot.Format, previous *snapshot.Snapshot) (*Survey, error) {
	c := &creation{Options: Options{Repo: repo, Format: format}}
	g, gctx := errgroup.WithContext(ctx)
	c.read(gctx, g, true, previous)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := c.collectFacts(ctx); err != nil {
		return nil, err
	}
	ch := newChooser(c)
	ch.tracked()
	if err := ch.untracked(ctx); err != nil {
		return nil, err
	}
	return &Survey{Tree: c.origin, Ignored: ch.ignored(), Problems: c.problems, index: c.index}, nil
}

// ignored lists what git ignores. A folder in which git ignores everything is
// not ignored itself: new files there may not be.
func (ch *chooser) ignored() []superqode.RelPath {
	var list []superqode.RelPath
	for i := range ch.entries {
		if ch.keep[i] == ignored {
			list = append(list, ch.entries[i].Path)
		}
	}
	return list
}

// Unsaved returns the files and links whose contents, according to the index,
// are not in the repository's object database. Their ids must be known.
func (s *Survey) Unsaved() []snapshot.Entry {
	return (&creation{index: s.index, base: s.Tree}).missing()
}
