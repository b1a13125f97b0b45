package gitfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Found is how repositories differ from what was recorded, one line each.
type Found struct {
	Differences []string
	NotCovered  []string // what nobody can say it of: what it is, and why
}

// Compare looks again at what Record recorded in a session's folder, o.Tree being the origin
// now. The git that find returns answers whether objects can still be read whose
// files are gone.
func Compare(ctx context.Context, o Origin, session string, find func(context.Context) (*git.Git, error)) (*Found, error) {
	c := &comparison{origin: o, git: find}
	if o.State != nil {
		c.states = []*revert.RepoState{o.State}
	}
	then, f, err := load(filepath.Join(session, Folder))
	if errors.Is(err, os.ErrNotExist) { // an older superqode opened the session
		return &Found{NotCovered: []string{"modes and object files of the repository: they were not recorded"}}, c.compareStates(nil)
	}
	if err != nil {
		return nil, err
	}
	if f.Kept && !o.Kept {
		c.NotCovered = append(c.NotCovered, "loose objects of the repositories: the session began with a kernel layer that keeps programs from them")
	}
	c.origin.Kept = f.Kept
	if c.now, err = look(ctx, c.origin, then); err != nil {
		return nil, err
	}
	c.states = append(c.states, f.Repositories...)
	// A submodule's repository lies in its superproject's: the innermost one is asked first.
	slices.SortStableFunc(c.states, func(a, b *revert.RepoState) int { return cmp.Compare(len(b.CommonDir), len(a.CommonDir)) })
	c.folder("", then.tops, c.now.tops)
	for _, dir := range slices.Sorted(maps.Keys(then.within)) {
		if now := c.now.within[dir]; now != nil {
			if err := hashSmall(ctx, now, then.within[dir]); err != nil {
				return nil, err
			}
			c.folder(dir, then.within[dir], now)
		}
	}
	if f.Kept {
		c.lookAtLinked(ctx, then)
	}
	for _, p := range c.now.closed {
		if then.has("/" + string(p)) {
			c.tell(p, "cannot be read")
		}
	}
	if err := c.compareStates(f.Repositories); err != nil {
		return nil, err
	}
	return &c.Found, c.findMissing(ctx)
}

// folder compares what is in one folder. What was told or cannot be read is left out.
func (c *comparison) folder(dir string, then, now *snapshot.Snapshot) {
	whole := func(e *snapshot.Entry) *snapshot.Entry { // its path is made for those that differ
		if e == nil || dir == "" {
			return e
		}
		copied := *e
		copied.Path = fromRoot(dir) + "/" + e.Path
		return &copied
	}
	for a, b := range snapshot.Join(then.Entries, now.Entries) {
		if a != nil && b != nil && a.Stat == b.Stat && a.Size == b.Size && a.Perm == b.Perm && a.Kind == b.Kind && a.Link == b.Link {
			continue
		}
		a, b := whole(a), whole(b)
		path := cmp.Or(b, a).Path
		if !c.within(path, c.told) && !c.within(path, c.now.closed) {
			c.pair(a, b, c.place(path))
		}
	}
}

// lookAtLinked tells of loose objects that were changed since, although mounts kept
// programs from them and nobody listed them: an earlier git clone on this machine gave
// them another name each, as hard links.
func (c *comparison) lookAtLinked(ctx context.Context, then *looked) {
	reached := 0
	for _, dir := range slices.Sorted(maps.Keys(then.within)) {
		sn := then.within[dir]
		for i := range sn.Entries {
			if e := &sn.Entries[i]; e.Kind == snapshot.Dir && e.Path.Name() == "objects" {
				reached += c.linkedBelow(ctx, e.Path.In(dir), sn.Taken.UnixNano())
			}
		}
	}
	if reached > 0 {
		c.NotCovered = append(c.NotCovered, text.Plural(reached, "object file")+": modes, owners and attributes (each has another name, by which it was changed)")
	}
}

// linkedBelow looks at the loose objects in a folder of objects, and counts the files of
// which only the content can be told. A folder has one name: of one that cannot be read
// there is nothing to tell.
func (c *comparison) linkedBelow(ctx context.Context, dir string, since int64) (reached int) {
	sn, _, err := snapshot.Scan(ctx, dir, snapshot.ScanOptions{
		Contents: snapshot.StatOnly,
		Skip:     func(p superqode.RelPath, _ snapshot.Kind) bool { return p.Parent() == "" && !isFanOut(p.Name()) },
	})
	if err != nil {
		return 0
	}
	for i := range sn.Entries {
		e := &sn.Entries[i]
		if e.Kind != snapshot.File || e.Stat.Ctime < since || isTemporary(e.Path.Name()) {
			continue
		}
		file := e.Path.In(dir)
		at := c.place(fromRoot(file))
		if at.state == nil { // nobody knows what it is to hold
			reached++
		} else if e.Perm&0o400 == 0 {
			c.tell(fromRoot(file), fmt.Sprintf("mode changed to %04o", e.Perm))
		} else if err := CheckObject(file, at.state.ObjectFormat); err != nil {
			c.tell(fromRoot(file), "modified: "+err.Error())
		} else if e.Stat.Nlink > 1 || e.Stat.Mtime < since || e.Perm&0o222 != 0 { // no new object of the user's
			reached++
		}
	}
	return reached
}

// comparison is one Compare under way.
type comparison struct {
	Found
	origin  Origin
	git     func(context.Context) (*git.Git, error)
	now     *looked
	states  []*revert.RepoState
	told    []superqode.RelPath // folders of which one line was told: what is below them is no news
	missing []lost
}

// lost is a file of objects that is gone.
type lost struct {
	repo *git.Repo
	path superqode.RelPath
	id   string // of a loose object; "" for a pack
}

// place is where a path lies: in which repository, nil for none, and where there.
type place struct {
	state *revert.RepoState
	rel   string
}

func (c *comparison) place(p superqode.RelPath) place {
	for _, s := range c.states {
		if rel, ok := strings.CutPrefix("/"+string(p), string(s.CommonDir)+"/"); ok {
			return place{s, rel}
		}
	}
	return place{}
}

func (c *comparison) within(p superqode.RelPath, dirs []superqode.RelPath) bool {
	return slices.ContainsFunc(dirs, func(d superqode.RelPath) bool { return p != d && superqode.Within(p, d) })
}

// name is how a path is told: as seen from the origin's folder.
func (c *comparison) name(p superqode.RelPath) string {
	abs := "/" + string(p)
	if abs == c.origin.Top {
		return "the origin's own folder"
	}
	if rel, ok := strings.CutPrefix(abs, c.origin.Top+"/"); ok {
		abs = rel
	}
	return text.Printable(abs)
}

func (c *comparison) tell(p superqode.RelPath, what string) {
	c.Differences = append(c.Differences, c.name(p)+": "+what)
}

// pair compares one path.
func (c *comparison) pair(a, b *snapshot.Entry, at place) {
	switch {
	case b == nil:
		c.gone(a, at)
	case a == nil:
		c.created(b, at)
	case a.Kind != b.Kind || a.Link != b.Link:
		c.tell(a.Path, "type or target changed")
		c.told = append(c.told, a.Path)
	case a.Perm != b.Perm && a.Kind != snapshot.Link:
		c.tell(a.Path, fmt.Sprintf("mode changed from %04o to %04o", a.Perm, b.Perm))
	case a.Stat.UID != b.Stat.UID || a.Stat.GID != b.Stat.GID:
		c.tell(a.Path, "owner changed")
	case a.Kind == snapshot.File && (a.Stat != b.Stat || a.Size != b.Size):
		c.touched(a, b, at)
	}
}

// touched judges a file whose size, times or links are others than before.
func (c *comparison) touched(a, b *snapshot.Entry, at place) {
	same := a.Size == b.Size && a.Stat.Mtime == b.Stat.Mtime && a.Stat.Ino == b.Stat.Ino
	switch {
	case at.state != nil && isNote(at.rel):
	case at.state != nil && hasSum(at.rel):
		if steady := !isRewritten(at.rel); steady && a.Size != b.Size {
			c.tell(a.Path, "modified")
		} else if err := CheckObject("/"+string(a.Path), at.state.ObjectFormat); err != nil {
			c.tell(a.Path, "modified: "+err.Error())
		}
	case at.state != nil && at.state.Judges("/"+string(a.Path)), !a.ID.IsZero() && a.ID == b.ID:
		if same && a.Stat.Nlink == b.Stat.Nlink {
			c.NotCovered = append(c.NotCovered, c.name(a.Path)+": its extended attributes (its metadata was changed)")
		}
	case at.state != nil && path.Base(at.rel) == "index" && strings.HasPrefix(at.rel, "worktrees/"), at.rel == "index":
		if _, err := git.ReadIndex("/"+string(a.Path), at.state.ObjectFormat); err != nil {
			c.tell(a.Path, "modified: "+err.Error())
		} else if !same {
			c.NotCovered = append(c.NotCovered, c.name(a.Path)+": what the index of another worktree says")
		}
	case same:
		c.tell(a.Path, "its links, attributes or content changed; the content was not recorded")
	default:
		c.tell(a.Path, "modified")
	}
}

// gone judges a path that is there no more.
func (c *comparison) gone(a *snapshot.Entry, at place) {
	ext := path.Ext(at.rel)
	name := path.Base(at.rel)
	switch {
	case at.state == nil:
	case isNote(at.rel), ext == ".lock", isTemporary(name), at.state.Judges("/" + string(a.Path)):
		return
	case strings.HasPrefix(at.rel, "objects/"):
		dir := path.Base(path.Dir(at.rel))
		repo := &git.Repo{GitDir: string(at.state.CommonDir), CommonDir: string(at.state.CommonDir), ObjectFormat: at.state.ObjectFormat}
		switch {
		case a.Kind == snapshot.File && len(dir) == 2:
			c.missing = append(c.missing, lost{repo, a.Path, dir + name})
			return
		case ext == ".pack":
			c.missing = append(c.missing, lost{repo, a.Path, ""})
			return
		case ext == ".idx" && c.now.has("/"+strings.TrimSuffix(string(a.Path), "idx")+"pack"), name == "alternates":
		default:
			return // folders, and files that git makes again
		}
	case a.Kind == snapshot.Dir && (strings.HasPrefix(at.rel, "logs/") || at.rel == "worktrees"):
		return // git removes empty ones
	}
	c.tell(a.Path, "deleted")
	if a.Kind == snapshot.Dir {
		c.told = append(c.told, a.Path)
	}
}

// created judges a path that was not there.
func (c *comparison) created(b *snapshot.Entry, at place) {
	name := path.Base(at.rel)
	locks := path.Ext(name) == ".lock" && !isNote(at.rel)
	switch {
	case at.state == nil, locks:
	case isNote(at.rel), at.state.Judges("/" + string(b.Path)), strings.HasPrefix(name, "sharedindex."):
		return
	case strings.HasPrefix(at.rel, "objects/"):
		switch {
		case strings.HasSuffix(name, "alternates"):
		case b.Kind == snapshot.File && hasSum(at.rel) && path.Ext(name) != ".pack" && len(path.Base(path.Dir(at.rel))) > 2:
			if err := CheckObject("/"+string(b.Path), at.state.ObjectFormat); err == nil {
				return
			}
		default:
			return // what is added harms nothing
		}
	case strings.HasPrefix(at.rel, "lfs/"), b.Kind == snapshot.Dir && (at.rel == "logs" || strings.HasPrefix(at.rel, "logs/") || at.rel == "worktrees"):
		return
	}
	c.tell(b.Path, "created")
	if b.Kind == snapshot.Dir {
		c.told = append(c.told, b.Path)
	}
}

// isNote reports whether a file of a repository is one in which git and its
// background processes note what they did last: nothing is lost with it.
func isNote(rel string) bool {
	switch path.Base(rel) {
	case "FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "gc.log", "gc.pid", "maintenance.lock":
		return true
	}
	return strings.HasPrefix(rel, "fsmonitor--daemon") || rel == "objects/info/packs" || rel == "info/refs"
}

// isTemporary reports whether a name among the objects is that of a file that git
// has not finished.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
}

// hasSum reports whether CheckObject can tell what a file has to hold.
func hasSum(rel string) bool {
	name := path.Base(rel)
	switch {
	case isTemporary(name):
		return false
	case strings.HasPrefix(rel, "sharedindex."):
		return true
	case strings.HasPrefix(rel, "lfs/objects/"):
		return len(name) == 64
	case !strings.HasPrefix(rel, "objects/"):
		return false
	}
	return len(path.Base(path.Dir(rel))) == 2 || slices.Contains([]string{".pack", ".idx", ".rev", ".bitmap", ".mtimes", ".graph"}, path.Ext(name)) ||
		name == "multi-pack-index" || name == "commit-graph"
}

// isRewritten reports whether git writes a file with a sum anew under its old name.
func isRewritten(rel string) bool {
	ext := path.Ext(rel)
	return ext != ".pack" && ext != ".idx" && len(path.Base(path.Dir(rel))) != 2
}

// compareStates compares what nested repositories and submodules say.
func (c *comparison) compareStates(states []*revert.RepoState) error {
	for _, s := range states {
		dir := string(s.CommonDir)
		if !c.now.has(dir) {
			continue // told: it is gone
		}
		now, err := revert.Capture(repository(dir), "")
		var found []revert.Difference
		if err == nil {
			found, err = s.Compare(now)
		}
		if err != nil {
			c.tell(fromRoot(dir), "cannot be read: "+err.Error())
		}
		for _, d := range found {
			c.Differences = append(c.Differences, c.name(fromRoot(dir))+": "+text.Printable(d.String()))
		}
	}
	return nil
}

// findMissing tells of files of objects that are gone, unless git finds all that
// they held somewhere else: git gc packs objects, and removes the old packs. Where
// the configuration is not what it was, git is not asked: it might run what is
// written there.
func (c *comparison) findMissing(ctx context.Context) error {
	for len(c.missing) > 0 {
		repo := c.missing[0].repo
		var list []lost
		c.missing = slices.DeleteFunc(c.missing, func(l lost) bool {
			mine := l.repo.CommonDir == repo.CommonDir
			if mine {
				list = append(list, l)
			}
			return mine
		})
		absent := list
		if !c.distrusted(repo.CommonDir) {
			var err error
			if repo.Git, err = c.git(ctx); err != nil {
				return err
			}
			if absent, err = absentOf(ctx, repo, list); err != nil {
				return err
			}
		}
		for i, l := range absent {
			if i == maxMissing {
				c.Differences = append(c.Differences, text.Plural(len(absent)-i, "more object file")+" deleted")
				break
			}
			c.tell(l.path, "deleted, and what it held is nowhere else")
		}
	}
	return nil
}

// maxMissing is how many missing objects are told one by one.
const maxMissing = 20

// distrusted reports whether something was told of a repository that git would read.
func (c *comparison) distrusted(dir string) bool {
	of := c.name(fromRoot(dir))
	return slices.ContainsFunc(c.Differences, func(d string) bool {
		return strings.HasPrefix(d, of+": ") || strings.Contains(d, "config") || strings.Contains(d, "alternates")
	})
}

// Absent returns those of a repository's files of objects, which are gone, whose objects
// git does not find elsewhere. Paths are relative to the common dir; of a pack the
// .pack counts.
func Absent(ctx context.Context, repo *git.Repo, gone []superqode.RelPath) (absent []superqode.RelPath, err error) {
	var list []lost
	for _, p := range gone {
		switch dir := p.Parent().Name(); {
		case isTemporary(p.Name()):
		case isFanOut(dir):
			list = append(list, lost{repo, p, dir + p.Name()})
		case path.Ext(p.Name()) == ".pack":
			list = append(list, lost{repo, p, ""})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	list, err = absentOf(ctx, repo, list)
	for _, l := range list {
		absent = append(absent, l.path)
	}
	return absent, err
}

// absentOf returns the files of list whose objects git does not find.
func absentOf(ctx context.Context, repo *git.Repo, list []lost) (absent []lost, err error) {
	env := []string{"GIT_DIR=" + repo.GitDir, "GIT_NO_LAZY_FETCH=1"}
	var ids strings.Builder
	packs := false
	for _, l := range list {
		if packs = packs || l.id == ""; l.id != "" {
			ids.WriteString(l.id + "\n")
		}
	}
	out, err := repo.Git.Output(ctx, git.Cmd{Dir: filepath.Dir(repo.GitDir), Args: []string{"cat-file", "--batch-check"}, Env: env, Stdin: strings.NewReader(ids.String())})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return list, nil //nolint:nilerr // a repository that git cannot read has lost them all
	}
	gone := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutSuffix(line, " missing\n"); ok {
			gone[id] = true
		}
	}
	whole := true
	if packs { // nobody knows what was in it, but what the repository needs
		args := []string{"rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--all", "--reflog", "--indexed-objects"}
		whole = repo.Git.Run(ctx, git.Cmd{Dir: filepath.Dir(repo.GitDir), Args: args, Env: env}) == nil
	}
	for _, l := range list {
		if gone[l.id] || l.id == "" && !whole {
			absent = append(absent, l)
		}
	}
	return absent, context.Cause(ctx)
}
