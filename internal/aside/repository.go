package aside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitfiles"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// A git_snapshot session keeps the whole git common dir: the small files as
// copies, the big object files, which git never changes, as second names.
// git.snap has the list. What other sessions' worktrees have there is no part of
// it: these sessions look after it themselves.

// linkFrom is the size from which an object file is kept by a second name rather
// than as a copy, and manyObjects the number from which all are. A copy is safe
// from a program that writes into the file itself, a second name costs next to
// nothing.
const (
	linkFrom    = 1 << 20
	manyObjects = 1000
)

// skipSessions leaves the admin folders of superqode's own worktrees out of a
// repository's snapshot.
func skipSessions(path superqode.RelPath, _ snapshot.Kind) bool { return gitfiles.IsSession(path) }

// isObject reports whether a path below the common dir is a file that is named
// after its contents and never changed: git's objects and packs, those of
// submodules and those of git-lfs. What git tells about them in info is rewritten.
func isObject(path string) bool {
	if strings.Contains(path, "objects/info/") {
		return false
	}
	return strings.HasPrefix(path, "objects/") || strings.HasPrefix(path, "lfs/objects/") || strings.HasPrefix(path, "modules/") && strings.Contains(path, "/objects/")
}

// gcPatience is how long a session waits for somebody's git to finish moving the
// repository's objects about: git gc goes on in the background after a commit.
const gcPatience = 30 * time.Second

// KeepRepository records the repository and keeps copies of its files. Objects
// that git moved meanwhile, from files of their own into a pack, would be in
// neither place of what was kept: so the object files are looked at again, and
// as long as they are not those of before everything is kept anew.
func KeepRepository(ctx context.Context, s *site.Site, format snapshot.Format) error {
	dir := s.Source.Repo.CommonDir
	var err error
	if s.Rec.GitFolder, err = state.FolderInfoOf(dir); err != nil {
		return err
	}
	if err := keepNeighbours(ctx, s, format); err != nil {
		return err
	}
	start := time.Now()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		sn, err := keepOnce(ctx, s, dir, format)
		settled := false
		switch {
		case err == nil:
			settled, err = sameObjects(ctx, dir, sn)
		case errors.Is(err, os.ErrNotExist) && atomicfile.Exists(dir) && atomicfile.Exists(s.Folder):
			err = nil
		}
		if err != nil {
			return err
		}
		if settled {
			return sn.Save(filepath.Join(s.Folder, state.RepositorySnap))
		}
		if time.Since(start) > gcPatience {
			return superqode.WithHint(fmt.Errorf("the objects of %s do not stay as they are: git gc, or a fetch, is at work", dir), "wait for it to end, then run this again")
		}
		if err := os.RemoveAll(filepath.Join(s.AsideDir(), "git")); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gcQuiet is how long a temporary file among the objects has to have been left
// alone to be taken for one that a crash left: git writes into the others.
const gcQuiet = 5 * time.Second

// sameObjects reports whether a repository still has the object files that sn
// lists, as they were, and no other, and whether none is being written.
func sameObjects(ctx context.Context, dir string, sn *snapshot.Snapshot) (bool, error) {
	if top := sn.Find("objects"); top == nil || top.Kind != snapshot.Dir {
		return true, nil // a link: what lies behind it is not kept
	}
	now, _, err := snapshot.Scan(ctx, filepath.Join(dir, "objects"), snapshot.ScanOptions{Format: sn.Format, Contents: snapshot.StatOnly})
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the repository again: %w", err)
	}
	then := 0
	for i := range sn.Entries {
		if e := &sn.Entries[i]; e.Kind == snapshot.File && strings.HasPrefix(string(e.Path), "objects/") && isObject(string(e.Path)) {
			then++
		}
	}
	for i := range now.Entries {
		e := &now.Entries[i]
		if e.Kind != snapshot.File || !isObject("objects/"+string(e.Path)) {
			continue
		}
		then--
		was := sn.Find("objects/" + e.Path)
		name := e.Path.Name()
		temporary := strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
		if was == nil || !was.LooksCopied(e) || temporary && e.Stat.Mtime > now.Taken.Add(-gcQuiet).UnixNano() {
			return false, nil
		}
	}
	return then == 0, nil
}

// keepOnce scans the repository and keeps copies of what it found.
func keepOnce(ctx context.Context, s *site.Site, dir string, format snapshot.Format) (*snapshot.Snapshot, error) {
	sn, problems, err := snapshot.Scan(ctx, dir, snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly, Skip: skipSessions})
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	if len(problems) > 0 {
		return nil, superqode.WithHint(fmt.Errorf("read the repository %s: %w", dir, problems[0]), "make it readable: git_snapshot mode must be able to bring all of it back")
	}
	wanted := &snapshot.Snapshot{Root: dir, Format: format, Taken: sn.Taken}
	var big []snapshot.Entry
	objects := 0
	for i := range sn.Entries {
		if isObject(string(sn.Entries[i].Path)) {
			objects++
		}
	}
	for _, e := range sn.Entries {
		switch {
		case e.Kind != snapshot.File:
		case isObject(string(e.Path)) && (e.Size >= linkFrom || objects > manyObjects):
			big = append(big, e)
		default:
			wanted.Entries = append(wanted.Entries, e)
		}
	}
	if err := Copy(ctx, s, wanted, "git", sn); err != nil {
		return nil, err
	}
	failpoint.Hit("inplace.copied")
	if err := linkAside(ctx, s, big, sn); err != nil {
		return nil, err
	}
	failpoint.Hit("inplace.linked")
	return sn, nil
}

// fitWorktrees makes the folder in which git keeps its worktrees part of what is
// wanted where something is in it, or was there without any session's: it comes
// and goes with them.
func fitWorktrees(s *site.Site, sn *snapshot.Snapshot) error {
	const name = "worktrees"
	at, found := slices.BinarySearchFunc(sn.Entries, name, func(e snapshot.Entry, p superqode.RelPath) int { return cmp.Compare(e.Path, p) })
	there := len(sessionWorktrees(string(s.Rec.CommonDir))) > 0
	if there && !found {
		e, err := snapshot.StatEntry(filepath.Join(string(s.Rec.CommonDir), name))
		if err != nil || e.Kind != snapshot.Dir {
			return err
		}
		e.Path = name
		sn.Entries = slices.Insert(sn.Entries, at, e)
	}
	if there || !found || len(sn.Below(name)) > 0 {
		return nil
	}
	neighbours, err := state.Names(neighboursDir(s))
	if len(neighbours) > 0 {
		sn.Entries = slices.Delete(sn.Entries, at, at+1)
	}
	return err
}

// linkAside gives object files a second name, and records the stat data that
// they have with it. On another file system they are copied.
func linkAside(ctx context.Context, s *site.Site, list []snapshot.Entry, sn *snapshot.Snapshot) error {
	dir := filepath.Join(s.AsideDir(), "git")
	last := superqode.RelPath("")
	for _, e := range list {
		if folder := e.Path.Parent(); folder != last {
			if err := os.MkdirAll(folder.In(dir), 0o700); err != nil {
				return err
			}
			last = folder
		}
	}
	entries := make([]*snapshot.Entry, 0, len(list)) // found before they are changed: a search reads its neighbours
	for _, e := range list {
		entries = append(entries, sn.Find(e.Path))
	}
	const workers = 4
	left := make([][]snapshot.Entry, workers)
	g, gctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() (err error) {
			left[w], err = linkSome(gctx, entries[w*len(list)/workers:(w+1)*len(list)/workers], dir, sn.Root)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("keep the repository's objects: %w", err)
	}
	copies := sn.With(slices.Concat(left...))
	if len(copies.Entries) == 0 {
		return nil
	}
	return Copy(ctx, s, copies, "git", sn)
}

// linkSome links a part of the list and returns what has to be copied.
func linkSome(ctx context.Context, list []*snapshot.Entry, dir, root string) (left []snapshot.Entry, err error) {
	for _, e := range list {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		to := e.Path.In(dir)
		err := os.Link(e.Path.In(root), to)
		if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMLINK) || errors.Is(err, unix.EOPNOTSUPP) {
			left = append(left, *e)
			continue
		}
		if err == nil {
			err = restat(to, e)
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

func restat(file string, e *snapshot.Entry) error {
	now, err := snapshot.StatEntry(file)
	if err != nil {
		return err
	}
	e.Stat, e.Size = now.Stat, now.Size
	return nil
}

// RepositoryTree is the git common dir of a git_snapshot session as it has to be.
func RepositoryTree(s *site.Site) (*revert.Tree, error) {
	base, err := site.Held(s, state.RepositorySnap, snapshot.Load)
	if err != nil {
		return nil, fmt.Errorf("read what the repository was: %w", err)
	}
	if err := fitWorktrees(s, base); err != nil {
		return nil, err
	}
	return &revert.Tree{Dir: string(s.Rec.CommonDir), Base: base, Skip: skipSessions, Aside: filepath.Join(s.AsideDir(), "git")}, nil
}

// RestoreRepository brings the git common dir back before any git is run in it:
// what the program left there could be code that would run in the user's name.
// What is overwritten or removed is salvaged first.
func RestoreRepository(ctx context.Context, s *site.Site, how revert.Method, dry bool) (*revert.Restored, error) {
	tree, err := RepositoryTree(s)
	if err != nil {
		return nil, err
	}
	if !dry {
		if err := ClearImpostor(ctx, s, tree.Dir); err != nil {
			return nil, err
		}
		failpoint.Hit("inplace.top")
		if err := restoreNeighbours(ctx, s); err != nil {
			return nil, err
		}
		failpoint.Hit("inplace.neighbours")
		if err := fitWorktrees(s, tree.Base); err != nil {
			return nil, err
		}
	} else if st, err := os.Lstat(tree.Dir); err != nil || !st.IsDir() {
		return &revert.Restored{Paths: []string{""}}, nil
	}
	now, problems, err := tree.Scan(ctx, revert.Stat)
	if err != nil {
		return nil, err
	}
	if left, err := leave(ctx, s, tree, now); err != nil || left {
		return &revert.Restored{Verified: err == nil}, err
	}
	bad, err := ResolveObjects(ctx, s, tree, now, how == revert.Full)
	if err != nil {
		return nil, err
	}
	res, err := tree.Restore(ctx, revert.RestoreOptions{How: how, DryRun: dry, Seen: &revert.Seen{Now: now, Problems: problems}, Keep: KeepOverwritten(s, tree.Dir, "git-dir")})
	failpoint.Hit("inplace.repository")
	if err != nil || dry {
		return res, err
	}
	if err := s.Rec.GitFolder.Restore(tree.Dir); err != nil {
		return res, err
	}
	failpoint.Hit("inplace.repository-done")
	res.Differences = append(res.Differences, bad...)
	res.Verified = len(res.Differences) == 0
	return res, nil
}

// leave reports whether a repository stays as it is now, and sets what of it is not as
// it was: the kernel kept the session's programs from writing there, so it was the user
// who committed, tagged, configured or packed something, and may be at it still. None of
// it is taken back, unless objects are gone that nothing else holds.
func leave(ctx context.Context, s *site.Site, tree *revert.Tree, now *snapshot.Snapshot) (bool, error) {
	if !s.Rec.GitReadOnly || s.Rec.Kernel != kernel.Active || s.Rec.Runs == 0 {
		return false, nil
	}
	lines, err := usersOwn(s, tree.Aside)
	if s.Kept = lines; lines == nil || err != nil || len(lines) > 0 {
		return len(lines) > 0, err
	}
	var gone []superqode.RelPath
	for i := range tree.Base.Entries {
		if e := &tree.Base.Entries[i]; e.Kind == snapshot.File && isObject(string(e.Path)) && now.Find(e.Path) == nil {
			gone = append(gone, e.Path)
		}
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return false, err
	}
	absent, err := gitfiles.Absent(ctx, repo, gone)
	return len(absent) == 0, err
}

// usersOwn returns how the repository differs from what was kept of it, nil where nobody
// can say. An index that was only refreshed, and new objects, are no difference.
func usersOwn(s *site.Site, kept string) ([]string, error) {
	own, err := filepath.Rel(string(s.Rec.CommonDir), string(s.Rec.GitDir))
	if err != nil {
		return nil, err
	}
	repo := &git.Repo{GitDir: filepath.Join(kept, own), CommonDir: kept, ObjectFormat: s.Rec.ObjectFormat}
	_ = os.MkdirAll(filepath.Join(kept, "refs"), 0o700) // only files were kept, and all refs may be packed
	then, err := revert.Capture(repo, "")
	if err != nil {
		return nil, nil //nolint:nilerr // nothing to compare with: all of it is brought back
	}
	then.IndexCopy = []byte(filepath.Join(repo.GitDir, "index"))
	then.GitDir, then.CommonDir = []byte(s.Rec.GitDir), []byte(s.Rec.CommonDir)
	now, err := revert.Capture(&git.Repo{GitDir: string(s.Rec.GitDir), CommonDir: string(s.Rec.CommonDir), ObjectFormat: s.Rec.ObjectFormat}, "")
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be read is brought back
	}
	found, err := then.Compare(now)
	lines := []string{}
	for _, d := range found {
		lines = append(lines, text.Printable(d.String())+" (not by the session: it was left so)")
	}
	return lines, err
}

// WithUsers is the base with the files that the user committed, or staged, in a
// repository that is left so: to take them back would undo half of what the user did.
// A file of which the index has another content than the work tree is the base's.
func WithUsers(ctx context.Context, s *site.Site, base *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	own, err := filepath.Rel(string(s.Rec.CommonDir), string(s.Rec.GitDir))
	if err != nil || len(s.Kept) == 0 {
		return base, err
	}
	then, err := git.ReadIndex(filepath.Join(s.AsideDir(), "git", own, "index"), s.Rec.ObjectFormat)
	if err != nil {
		return base, nil //nolint:nilerr // there was none, or it is split: nothing is known
	}
	now, err := git.ReadIndex(filepath.Join(string(s.Rec.GitDir), "index"), s.Rec.ObjectFormat)
	if err != nil {
		return base, nil //nolint:nilerr // as above
	}
	theirs, ids := map[superqode.RelPath]snapshot.Entry{}, map[superqode.RelPath]snapshot.ID{}
	for i := range now.Len() {
		e := now.At(i)
		if at, ok := then.Search(e.Path); ok && then.At(at).OID == e.OID {
			continue
		}
		ids[e.Path] = snapshot.IDFrom([]byte(e.OID))
		want := snapshot.File
		for p := e.Path; p != ""; p, want = p.Parent(), snapshot.Dir { // its folders may be new, too
			is, err := snapshot.StatEntry(p.In(string(s.Rec.Origin)))
			if err == nil && is.Kind == want && (want == snapshot.File || base.Find(p) == nil) {
				is.Path = p
				theirs[p] = is
			}
		}
	}
	found := base.With(slices.SortedFunc(maps.Values(theirs), snapshot.ByPath))
	found.Root = string(s.Rec.Origin)
	if _, err := snapshot.HashMissing(ctx, found); err != nil {
		return nil, err
	}
	var paths []superqode.RelPath
	for i := range found.Entries {
		if e := &found.Entries[i]; e.Kind == snapshot.Dir || e.ID == ids[e.Path] {
			paths = append(paths, e.Path)
		}
	}
	for i := range then.Len() {
		p := then.At(i).Path
		if _, ok := now.Search(p); !ok && !atomicfile.Exists(p.In(string(s.Rec.Origin))) {
			paths = append(paths, p)
		}
	}
	return base.WithOthers(paths, found), nil
}

// ClearImpostor makes sure that dir is a folder that can be worked in. What
// stands in its place is salvaged and removed.
func ClearImpostor(ctx context.Context, s *site.Site, dir string) error {
	e, err := snapshot.StatEntry(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	case e.Kind == snapshot.Dir:
		if e.Perm&0o700 != 0o700 {
			return unix.Chmod(dir, e.Perm|0o700)
		}
		return nil
	}
	e.Path = superqode.RelPath(filepath.Base(dir))
	if e.Kind == snapshot.Link {
		if e.Link, err = os.Readlink(dir); err != nil {
			return err
		}
	}
	if _, err := s.Keep(ctx, salvage.Part{Dir: filepath.Dir(dir), Prefix: "instead-of", Entries: []snapshot.Entry{e}}); err != nil {
		return err
	}
	failpoint.Hit("inplace.impostor")
	if err := os.Remove(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// ResolveObjects finds out what the object files held that are kept by a second
// name: nothing as long as their stat data are what they were (and not all are
// asked for) in now, what was found there, else the second name is checked against
// itself and read. It returns those that were written to, which changed the second name too.
func ResolveObjects(ctx context.Context, s *site.Site, tree *revert.Tree, now *snapshot.Snapshot, all bool) (bad []string, err error) {
	held := &snapshot.Snapshot{Root: tree.Aside, Format: tree.Base.Format}
	for i := range tree.Base.Entries {
		e := &tree.Base.Entries[i]
		if e.Kind != snapshot.File || !e.ID.IsZero() {
			continue
		}
		if is := now.Find(e.Path); is != nil && is.Stat == e.Stat && is.Size == e.Size && !all {
			continue
		}
		err := gitfiles.CheckObject(e.Path.In(tree.Aside), s.Rec.ObjectFormat)
		if errors.Is(err, gitfiles.ErrDamaged) || errors.Is(err, os.ErrNotExist) || errors.Is(err, atomicfile.ErrNotRegular) {
			bad = append(bad, text.Printable(e.Path)+": written to, and it was kept by a second name only")
			continue
		}
		if err != nil {
			return bad, err
		}
		held.Entries = append(held.Entries, snapshot.Entry{Path: e.Path, Kind: snapshot.File, Perm: e.Perm, Size: e.Size})
	}
	problems, err := snapshot.HashMissing(ctx, held)
	if err != nil || len(problems) > 0 {
		return bad, snapshot.WithProblems(err, problems)
	}
	for i := range held.Entries {
		tree.Base.Find(held.Entries[i].Path).ID = held.Entries[i].ID
	}
	return bad, nil
}

// Neighbours are the open worktree sessions of a repository in which a
// git_snapshot session works. What git keeps of their worktrees is theirs to
// change meanwhile, so it is no part of the repository's snapshot; but a program
// that deletes .git takes that along. It is kept, too, and brought back where it
// is gone or cannot be meant.

func neighboursDir(s *site.Site) string { return filepath.Join(s.AsideDir(), "neighbours") }

// keepNeighbours copies what git keeps of other sessions' worktrees.
func keepNeighbours(ctx context.Context, s *site.Site, format snapshot.Format) error {
	for _, id := range sessionWorktrees(s.Source.Repo.CommonDir) {
		sn, _, err := snapshot.Scan(ctx, filepath.Join(s.Source.Repo.CommonDir, "worktrees", id), snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly})
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return err
		}
		dir := filepath.Join(neighboursDir(s), id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		// What changes meanwhile (its program runs) is as good as any moment's.
		if _, _, err := treecopy.Copy(ctx, sn, dir, treecopy.CopyOptions{}); err != nil {
			return fmt.Errorf("keep what git has of session %s: %w", id, err)
		}
	}
	return nil
}

// sessionWorktrees lists the sessions of which git keeps a worktree.
func sessionWorktrees(commonDir string) []string {
	names, _ := state.Names(filepath.Join(commonDir, "worktrees")) // none, mostly
	names = slices.DeleteFunc(names, func(name string) bool {
		_, err := superqode.ParseSessionID(name)
		return err != nil
	})
	slices.Sort(names)
	return names
}

// restoreNeighbours brings back what the program destroyed of sessions that are
// still open.
func restoreNeighbours(ctx context.Context, s *site.Site) error {
	names, err := state.Names(neighboursDir(s))
	if err != nil {
		return err
	}
	for _, id := range names {
		if l, err := state.Load(s.Project.SessionPath(id)); err != nil || l.State == superqode.StateDone || !atomicfile.Exists(string(l.Workspace)) {
			continue // there is nothing to look after any more: it is done, or on its way to that and has taken both away
		}
		if err := restoreNeighbour(ctx, s, id); err != nil {
			return fmt.Errorf("bring back what git had of session %s: %w", id, err)
		}
	}
	return nil
}

func restoreNeighbour(ctx context.Context, s *site.Site, id string) error {
	kept, admin := filepath.Join(neighboursDir(s), id), filepath.Join(string(s.Rec.CommonDir), "worktrees", id)
	base, problems, err := snapshot.Scan(ctx, kept, snapshot.ScanOptions{Format: snapshot.SHA256})
	if err != nil || len(problems) > 0 {
		return snapshot.WithProblems(err, problems)
	}
	opt := revert.RestoreOptions{Keep: KeepOverwritten(s, admin, "")}
	if _, err := os.Lstat(admin); errors.Is(err, os.ErrNotExist) {
		s.Warn("the program took away what git keeps of the worktree of session " + id + "; it was put back")
	} else if opt.Within = spoilt(s, kept, admin); len(opt.Within) == 0 {
		return nil
	}
	for _, dir := range []string{filepath.Dir(admin), admin} {
		if err := ClearImpostor(ctx, s, dir); err != nil {
			return err
		}
	}
	tree := &revert.Tree{Dir: admin, Base: base, Aside: kept}
	res, err := tree.Restore(ctx, opt)
	if err == nil && !res.Verified {
		err = superqode.Errorf(superqode.ErrVerification, "%s", text.FirstOf(res.Differences))
	}
	return err
}

// spoilt names the files of a session's worktree that its own program cannot
// have left so: those that never change, and those that git could not read.
func spoilt(s *site.Site, kept, admin string) (paths []superqode.RelPath) {
	for _, name := range []superqode.RelPath{"HEAD", "commondir", "config.worktree", "gitdir", "index"} {
		was, wasErr := atomicfile.Read(name.In(kept))
		is, isErr := atomicfile.Read(name.In(admin))
		bad := (wasErr == nil) != (isErr == nil)
		if !bad && wasErr == nil {
			switch name {
			case "HEAD":
				bad = !isHead(string(is))
			case "index":
				_, err := git.ReadIndex(name.In(admin), s.Rec.ObjectFormat)
				bad = errors.Is(err, git.ErrIndexCorrupt)
			default:
				bad = string(was) != string(is)
			}
		}
		if bad {
			paths = append(paths, name)
		}
	}
	return paths
}

// isHead reports whether git can make sense of a HEAD file.
func isHead(text string) bool {
	text = strings.TrimSuffix(text, "\n")
	if ref, ok := strings.CutPrefix(text, "ref: "); ok {
		return strings.HasPrefix(ref, "refs/")
	}
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
