package mode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
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
	case opt.From != FromWorking:
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "overlay mode begins with what you see now, not with %s", opt.From), "superqode run --worktree --from %s -- CMD", text.QuotePOSIX(opt.From))
	case o.Repo == nil:
		return opt, nil
	}
	head, err := o.Repo.Head(ctx)
	opt.Commit = head
	return opt, err
}

// NeedsMounts is the error of a session whose workspace only a mount shows, where there
// is none.
func NeedsMounts(m superqode.Mode) error {
	return superqode.Errorf(superqode.ErrUsage, "mode %s needs the mounts of the kernel layer", m)
}

// Overlay is what the record of a session has of its overlay before that is made.
func (f Facts) Overlay(o *site.Origin) *state.Overlay {
	if !f.Mounted {
		return nil
	}
	return &state.Overlay{At: state.HostPath(o.Top)}
}

// skipTop is what no state has: git's and superqode's own folders in the origin.
func skipTop(path superqode.RelPath, _ snapshot.Kind) bool {
	return path == ".git" || path == ".superqode"
}

// Make finds or makes the frozen state of the origin, and puts an empty folder over it.
func (k overlayKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	if repo := s.Source.Repo; repo != nil {
		var err error
		if s.RepoState, err = revert.Capture(repo, filepath.Join(s.Folder, "state")); err != nil {
			return nil, err
		}
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
	for _, dir := range []string{string(s.Rec.Workspace), s.Upper(), filepath.Join(string(s.Rec.Workspace), "work")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	failpoint.Hit("overlay.made")
	if err := errors.Join(os.Chmod(s.Upper(), top.Mode().Perm()|0o700), os.Chtimes(s.Upper(), top.ModTime(), top.ModTime())); err != nil {
		return nil, err
	}
	s.Rec.Overlay = &state.Overlay{At: s.Rec.Origin}
	for _, dir := range st.Lower {
		s.Rec.Overlay.Lower = append(s.Rec.Overlay.Lower, state.HostPath(superqode.RealPrefix(dir)))
	}
	return nil, nil
}

// state returns what the session begins with: the origin as it is now, or what the one
// began with whose agent works in this one.
func (k overlayKind) state(ctx context.Context, s *site.Site, opt Options) (*frozen.State, error) {
	if b := opt.Beside; b != nil {
		st := &frozen.State{Lower: make([]string, 0, len(b.Rec.Overlay.Lower))}
		for _, dir := range b.Rec.Overlay.Lower {
			st.Lower = append(st.Lower, string(dir))
		}
		var err error
		if st.Base, err = b.LoadBase(); err == nil {
			st.Origin, err = b.LoadOrigin()
		}
		return st, err
	}
	st, err := frozen.Current(ctx, frozen.Options{
		Dir: s.Project.BasePath(), Top: s.Source.Top, Format: opt.Format, Skip: skipTop, Trash: s.Project.TrashPath(), Meter: s.Meter,
	})
	if err != nil {
		return nil, err
	}
	skip := k.Skip(s)
	keep := func(e *snapshot.Entry) bool { return !skip(e.Path, e.Kind) && !InsideGit(e.Path) }
	st.Origin, st.Base = st.Origin.Only(keep), st.Base.Only(keep)
	return st, nil
}

// scan reads what was written alone.
func (overlayKind) scan(ctx context.Context, s *site.Site, opt snapshot.ScanOptions) (*snapshot.Snapshot, []snapshot.Problem, error) {
	return frozen.Look(ctx, s.Upper(), s.Base, opt)
}

// keepBase takes what the base held from its layers.
func (overlayKind) keepBase(ctx context.Context, s *site.Site, l *Look) error {
	var paths []superqode.RelPath
	for _, c := range l.Changes {
		paths = append(paths, c.Path, c.OldPath)
	}
	return keepLower(ctx, s, l.Base, paths)
}

// keepLower stores the contents that base has at some paths.
func keepLower(ctx context.Context, s *site.Site, base *snapshot.Snapshot, paths []superqode.RelPath) error {
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	left := base.With(nil)
	seen := map[superqode.RelPath]bool{}
	for _, p := range paths {
		if e := base.Find(p); e != nil && !seen[p] && (e.Kind == snapshot.File || e.Kind == snapshot.Link) && !e.ID.IsZero() && !e.IsLarge() {
			seen[p] = true
			left.Entries = append(left.Entries, *e)
		}
	}
	slices.SortFunc(left.Entries, snapshot.ByPath)
	for _, dir := range s.Rec.Overlay.Lower {
		var here []snapshot.Entry
		left.Entries = slices.DeleteFunc(left.Entries, func(e snapshot.Entry) bool {
			now, err := snapshot.StatEntry(e.Path.In(string(dir)))
			if err != nil || now.Kind != e.Kind { // a whiteout, or in a layer below
				return false
			}
			here = append(here, e)
			return true
		})
		if len(here) == 0 {
			continue
		}
		if err := s.Store.WriteBlobs(ctx, string(dir), here); err != nil {
			return fmt.Errorf("keep the base's contents: %w", err)
		}
	}
	return nil
}

// Revert brings the files back, and the session's own git directory when all is reverted.
func (k overlayKind) Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	l := &Look{}
	base, err := s.LoadBase()
	if err != nil {
		return UnreadBase(s, err)
	}
	err = l.scanWorkspace(ctx, s, k.Skip(s))
	if err == nil {
		err = l.HashAll(ctx)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	var paths []superqode.RelPath
	for _, c := range snapshot.Compare(base, l.Final, snapshot.CompareOptions{}) {
		paths = append(paths, c.Path)
	}
	if err := keepLower(ctx, s, base, paths); err != nil {
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
