package mode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// overlayKind is overlay mode: the session's programs see the origin's own path, with
// everything that lies there, through a mount that only they see. What they write goes
// into a folder of superqode's over a frozen state of the origin.
type overlayKind struct{ plain }

func (overlayKind) Check(ctx context.Context, _ *site.Host, o *site.Origin, opt Options) (Options, error) {
	opt.Exclude = nil
	switch {
	case opt.Template != "":
		return opt, templateMode(opt)
	case o.Repo != nil && o.Repo.Bare:
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to make a session of", o.Top), "git clone %s DIR && superqode -C DIR run --overlay -- CMD", o.Top)
	case o.Repo != nil:
		return atCommit(ctx, o, opt)
	case opt.From != FromWorking:
		return opt, superqode.Errorf(superqode.ErrUsage, "--from %s needs a git repository, and %s is in none", opt.From, o.Top)
	}
	return opt, nil
}

// Overlay is what the record of a session has of its overlay before that is made.
func (f Facts) Overlay(o *site.Origin) *state.Overlay {
	if !f.Mounted {
		return nil
	}
	return &state.Overlay{At: state.HostPath(o.Top)}
}

// Skip also leaves out the folder in which superqode's own in the origin is shown.
func (overlayKind) Skip(*site.Site) snapshot.Skip { return SkipOrigin }

// skipTop is what no state has: git's and superqode's own folders in the origin.
func skipTop(path superqode.RelPath, _ snapshot.Kind) bool {
	return path == ".git" || path == ".superqode"
}

// Make finds or makes the frozen state of the origin, and puts an empty folder over it.
func (k overlayKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	if repo := s.Source.Repo; repo != nil {
		err := captureRepo(s, repo)
		if err == nil {
			err = joinIndex(s)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := frozen.Mkdir(string(s.Rec.Workspace)); err != nil {
		return nil, err
	}
	st, err := k.state(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	for _, p := range st.Unread {
		s.Warn(text.Printable(p.Path) + " is not, or not whole, in the workspace: " + p.Err.Error())
	}
	s.OriginBase, s.Base = st.Origin, st.Base
	top, err := os.Stat(s.Source.Top)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.Upper(), filepath.Join(string(s.Rec.Workspace), "work")} {
		if err := frozen.Mkdir(dir); err != nil {
			return nil, err
		}
	}
	failpoint.Hit("overlay.made")
	if err := errors.Join(os.Chmod(s.Upper(), top.Mode().Perm()|0o700), os.Chtimes(s.Upper(), top.ModTime(), top.ModTime())); err != nil {
		return nil, err
	}
	s.Rec.Overlay = &state.Overlay{At: s.Rec.Origin}
	for _, dir := range st.Lower {
		s.Rec.Overlay.Lower = append(s.Rec.Overlay.Lower, state.HostPath(dir))
	}
	return nil, nil
}

// state returns what the session begins with: the origin as it is now, or what the one
// began with whose agent works in this one.
func (k overlayKind) state(ctx context.Context, s *site.Site, opt Options) (*frozen.State, error) {
	if b := opt.Beside; b != nil {
		st := &frozen.State{Lower: b.Rec.Overlay.Lowers()}
		var err error
		if st.Base, err = b.LoadBase(); err == nil {
			st.Origin, err = b.LoadOrigin()
		}
		if data, rerr := atomicfile.Read(CommitIndex(b)); rerr == nil {
			err = errors.Join(err, os.WriteFile(CommitIndex(s), data, 0o600))
		}
		return st, err
	}
	fr := states(s.Project, s.Rec.ID)
	fr.Top, fr.Format, fr.Skip, fr.Meter = s.Source.Top, opt.Format, skipTop, s.Meter
	fr.Leave = func(now *snapshot.Snapshot) (map[superqode.RelPath]bool, error) {
		return leaveIgnored(ctx, s, opt, now)
	}
	st, err := frozen.Current(ctx, fr)
	if err != nil {
		return nil, err
	}
	if st.Bad != nil {
		s.Warn("the copy of the origin that overlays stand on is made anew: " + st.Bad.Error())
	}
	skip := k.Skip(s)
	gits := []superqode.RelPath{".git"} // as a scan that leaves them out finds them
	keep := func(e *snapshot.Entry) bool { return !skip(e.Path, e.Kind) && !InsideGit(e.Path) }
	for i := range st.Origin.Entries {
		if p := st.Origin.Entries[i].Path; p.Name() == ".git" && !InsideGit(p.Parent()) {
			gits = append(gits, p)
		}
	}
	st.Origin, st.Base = st.Origin.Only(keep), st.Base.Only(keep)
	st.Origin.Gits = gits
	if opt.From != FromWorking {
		return k.ofCommit(ctx, s, st, opt.Commit)
	}
	return st, nil
}

// states are the frozen states of a project's origin; the session that is being made
// needs none of them yet.
func states(p state.Project, made superqode.SessionID) frozen.Options {
	return frozen.Options{Dir: superqode.RealPrefix(p.BasePath()), Trash: p.TrashPath(), Used: func() (map[string]bool, bool) { return p.LayersInUse(made) }}
}

// SweepStates is frozen.Sweep for a project.
func SweepStates(ctx context.Context, p state.Project, all bool) error {
	err := frozen.Sweep(ctx, states(p, superqode.SessionID{}), all)
	if all {
		err = errors.Join(err, dropIndexes(p))
	}
	return err
}

// dropIndexes removes the copies of the origin's index that sessions to come would share;
// the others have links.
func dropIndexes(p state.Project) error {
	list, err := filepath.Glob(filepath.Join(text.QuotePattern(p.BasePath()), indexCopy+"*"))
	for _, path := range list {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// scan reads what was written alone.
func (overlayKind) scan(ctx context.Context, s *site.Site, opt snapshot.ScanOptions) (*snapshot.Snapshot, []snapshot.Problem, error) {
	if site.Lost(s) {
		s.Warn("the machine was started anew before the workspace was on the disk: what is there may lack anything")
	}
	return frozen.Look(ctx, s.Upper(), s.Base, opt)
}

// ignoredFile keeps what ignored found. It may come to be while a program runs.
const ignoredFile = "ignored-base"

// patchable leaves out what git ignored when the session began: it came along, and is in
// no patch. While nothing was written nobody needs to know.
func (k overlayKind) patchable(s *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if s.Rec.CommonDir == "" {
		return sn, nil
	}
	ignored, err := readPaths(s, ignoredFile)
	if errors.Is(err, fs.ErrNotExist) {
		ignored, err = k.ignored(s)
	}
	if err != nil || len(ignored) == 0 {
		return sn, err
	}
	return patchable(sn, ignored), nil
}

// ignored finds the topmost paths of the base that git ignores.
func (overlayKind) ignored(s *site.Site) (pathSet, error) {
	index, err := baseIndex(s)
	repo, rerr := s.Repo(context.Background())
	if err = errors.Join(err, rerr); err != nil {
		return nil, err
	}
	tree, err := linked.IgnoreTree(context.Background(), repo, string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	list := linked.IgnoredIn(s.Base, index, tree)
	return setOf(list), writePaths(s, ignoredFile, slices.Values(list))
}

// baseIndex is the index with which the session began.
func baseIndex(s *site.Site) (*git.Index, error) {
	if file := CommitIndex(s); atomicfile.Exists(file) {
		return git.ReadIndex(file, s.Rec.ObjectFormat)
	}
	return originIndex(s)
}

// captureRepo records the origin's repository. Its index, which may be large, is copied once
// for all sessions that begin with it: the copy has its digest in its name, is on the disk
// before it gets that, and is never written to.
func captureRepo(s *site.Site, repo *git.Repo) (err error) {
	if s.RepoState, err = revert.Capture(repo, ""); err != nil || s.RepoState.IndexSum == "" {
		return err
	}
	own, shared := filepath.Join(s.Folder, "state"), filepath.Join(s.Project.BasePath(), indexCopy+s.RepoState.IndexSum)
	if os.Link(shared, own) == nil {
		s.RepoState.IndexCopy = []byte(own)
		return nil
	}
	if s.RepoState, err = revert.Capture(repo, own); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Project.BasePath(), 0o700); err != nil {
		return err
	}
	_ = dropIndexes(s.Project)                                                   // another session may have done it
	shared = filepath.Join(s.Project.BasePath(), indexCopy+s.RepoState.IndexSum) // it may be another one by now
	if syncFile(own) == nil {
		_ = os.Link(own, shared) // else the next session copies it
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Sync(f), f.Close())
}

const indexCopy = "index-"

// joinIndex makes the copy of a split index a whole one: its shared part stays in the
// origin, and git removes it from there some day.
func joinIndex(s *site.Site) error {
	names, err := state.Names(s.Source.Repo.GitDir)
	if err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "sharedindex.") }) {
		return err
	}
	x, err := git.ReadIndex(filepath.Join(s.Source.Repo.GitDir, "index"), s.Source.Repo.ObjectFormat)
	if err != nil || !x.Split {
		return err
	}
	return x.Write(filepath.Join(s.Folder, "state"), func(i int) git.IndexStat { return x.At(i).Stat })
}

// originIndex is the origin's index as it was when the session began.
func originIndex(s *site.Site) (*git.Index, error) {
	return git.ReadIndex(filepath.Join(s.Folder, "state"), s.Rec.ObjectFormat)
}

// fromLayers reports whether what the base holds of a path lies in its layers: what the
// setup made does not, and was kept then.
func fromLayers(s *site.Site) (func(snapshot.Entry) bool, error) {
	effect, err := loadEffect(s)
	return func(e snapshot.Entry) bool {
		if effect == nil {
			return true
		}
		made := effect.after.Find(e.Path)
		return made == nil || made.ID != e.ID
	}, err
}

// keepBase takes from its layers what the base held and no object of git's does, or no
// longer: nothing in the repository keeps its gc from what an overlay stands on.
func (overlayKind) keepBase(ctx context.Context, s *site.Site, l *Look) error {
	index := &git.Index{}
	if s.Rec.CommonDir != "" {
		var err error
		if index, err = baseIndex(s); err != nil {
			return err
		}
	}
	layered, err := fromLayers(s)
	if err != nil {
		return err
	}
	var paths, changed []snapshot.Entry
	for e, now := range snapshot.Join(l.Base.Entries, l.Final.Entries) {
		if e == nil || !layered(*e) {
			continue
		}
		if at, ok := index.Search(e.Path); !ok || index.At(at).OID != string(e.ID.Bytes()) {
			paths = append(paths, *e)
		} else if now == nil || now.ID != e.ID {
			changed = append(changed, *e)
		}
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	missing, err := s.Store.Missing(ctx, changed)
	if err != nil {
		return err
	}
	for _, e := range changed {
		if missing[e.ID] {
			paths = append(paths, e)
		}
	}
	slices.SortFunc(paths, snapshot.ByPath)
	err = frozen.Keep(ctx, s.Store, s.Rec.Overlay.Lowers(), l.Base.With(paths))
	if _, changed := errors.AsType[*store.ChangedError](err); changed || errors.Is(err, fs.ErrNotExist) {
		return superqode.WithHint(fmt.Errorf("what the session stands on was changed by somebody else: %w", err),
			"superqode workspace cleanup --force # salvages what was written, and removes the session")
	}
	return err
}

// Revert brings the files back, and the session's own git directory when all is reverted.
func (k overlayKind) Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	l := &Look{}
	base, err := s.LoadBase()
	if err != nil {
		return UnreadBase(s, err)
	}
	layered, err := fromLayers(s)
	if err == nil {
		err = l.scanWorkspace(ctx, s, k.Skip(s))
	}
	if err == nil {
		err = l.HashAll(ctx)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	var paths []snapshot.Entry
	for _, c := range snapshot.Compare(base, l.Final, snapshot.CompareOptions{}) {
		if e := base.Find(c.Path); e != nil && layered(*e) {
			paths = append(paths, *e)
		}
	}
	err = s.OpenStore(ctx)
	if err = errors.Join(err, frozen.Keep(ctx, s.Store, s.Rec.Overlay.Lowers(), base.With(paths))); err != nil {
		return err
	}
	if err := revertWorkspace(ctx, s, opt, r); err != nil || len(opt.Paths) > 0 || opt.DryRun {
		return err
	}
	return opt.Forget(ctx)
}

func (overlayKind) Remove(_ context.Context, s *site.Site, _ bool) error {
	if err := errors.Join(ownWorkspace(s), s.ForgetMount()); err != nil {
		return err
	}
	if err := trash.Put(string(s.Rec.Workspace), s.Project.TrashPath()); err != nil {
		return err
	}
	return gone(string(s.Rec.Workspace))
}
