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
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// inPlaceKind is what the modes have in common that work in the origin itself.
type inPlaceKind struct{ plain }

func (inPlaceKind) Check(ctx context.Context, _ *site.Host, o *site.Origin, opt Options) (_ Options, err error) {
	opt.Include = nil
	switch {
	case opt.From != FromWorking:
		return opt, superqode.Errorf(superqode.ErrUsage, "--from %s needs worktree mode; %s mode works on the files as they are", opt.From, opt.Mode)
	case opt.Template != "":
		return opt, templateMode(opt)
	case o.Repo == nil:
		return opt, nil
	case o.Repo.Bare:
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to work in", o.Top), "git clone %s DIR && superqode -C DIR run -- CMD", o.Top)
	}
	opt.Exclude = nil
	opt.Commit, err = o.Repo.Head(ctx)
	return opt, err
}

// record keeps what the origin's own folder is, and makes the session known by
// its path.
func (inPlaceKind) record(s *site.Site) (err error) {
	if s.Rec.TopFolder, err = state.FolderInfoOf(s.Source.Top); err != nil {
		return err
	}
	if err := s.Point(); err != nil {
		return err
	}
	failpoint.Hit("inplace.pointed")
	return nil
}

// Remove removes nothing: the workspace is the user's own folder.
func (inPlaceKind) Remove(context.Context, *site.Site, bool) error { return nil }

// keepTree copies aside what the repository's objects do not have, and fills in
// the content ids on the way.
func keepTree(ctx context.Context, s *site.Site, survey *linked.Survey) error {
	tree := survey.Tree
	unsaved := map[superqode.RelPath]bool{}
	for _, e := range survey.Unsaved() {
		unsaved[e.Path] = true
	}
	wanted := tree.Only(func(e *snapshot.Entry) bool { return e.Kind == snapshot.File && unsaved[e.Path] })
	return copyAside(ctx, s, wanted, "tree", tree)
}

// unreadableError names files that the user may not read.
type unreadableError []snapshot.Problem

func (e unreadableError) Error() string { return e[0].Error() }

// copyAside copies files into a folder of the session's aside folder and records
// in sn what was copied. When all is copied but files that cannot be read, the
// error is an unreadableError.
func copyAside(ctx context.Context, s *site.Site, wanted *snapshot.Snapshot, name string, sn *snapshot.Snapshot) error {
	if err := failpoint.Err("inplace.aside"); err != nil {
		return err
	}
	dir := filepath.Join(s.AsideDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if len(wanted.Entries) == 0 {
		return nil
	}
	kept, problems, err := treecopy.Copy(ctx, wanted, dir, treecopy.CopyOptions{Existing: true})
	if err != nil {
		return fmt.Errorf("keep what %s holds: %w", sn.Root, err)
	}
	var unreadable unreadableError
	for _, p := range problems {
		switch {
		case errors.Is(p.Err, os.ErrNotExist) && name == "git" && isObject(string(p.Path)):
			return p // git moved it into a pack: keepRepository begins again
		case errors.Is(p.Err, snapshot.ErrChangedWhileRead), errors.Is(p.Err, os.ErrNotExist):
			s.Warn(text.Printable(p.Path) + " changed while it was copied; what it holds now may not come back")
		case errors.Is(p.Err, os.ErrPermission):
			unreadable = append(unreadable, p)
		default:
			return fmt.Errorf("keep what %s holds: %w", sn.Root, p)
		}
	}
	for i := range kept.Entries {
		k := &kept.Entries[i]
		if e := sn.Find(k.Path); e != nil && e.Kind == k.Kind && k.Kind == snapshot.File {
			e.ID, e.Size, e.Stat.Mtime = k.ID, k.Size, k.Stat.Mtime // as it was copied, should it have changed since the scan
		}
	}
	sn.Entries = slices.DeleteFunc(sn.Entries, func(e snapshot.Entry) bool {
		return e.Kind == snapshot.File && e.ID.IsZero() && wanted.Find(e.Path) != nil
	}) // gone by now, or not to be read
	if unreadable != nil {
		return fmt.Errorf("keep what %s holds: %w", sn.Root, unreadable)
	}
	return nil
}

// keepBase puts the contents of the base that only the aside folder holds into the
// store, as far as the session changed them: the patch is made from there. The
// others of the base's tree have to be there too.
func (inPlaceKind) keepBase(ctx context.Context, s *site.Site, l *Look) error {
	if s.BaseKept {
		return nil
	}
	root := filepath.Join(s.AsideDir(), "tree")
	held, problems, err := snapshot.Scan(ctx, root, snapshot.ScanOptions{Format: l.Base.Format, Contents: snapshot.StatOnly})
	if err != nil || len(problems) > 0 {
		return snapshot.WithProblems(err, problems)
	}
	var list []snapshot.Entry
	for i := range held.Entries {
		if e := l.Base.Find(held.Entries[i].Path); e != nil && e.Kind == snapshot.File && held.Entries[i].Kind == snapshot.File && !e.IsLarge() {
			list = append(list, *e)
		}
	}
	for _, e := range l.Base.Entries { // what a link says is in its entry
		if e.Kind == snapshot.Link {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, snapshot.ByPath)
	if err := s.Store.WriteBlobs(ctx, root, list); err != nil {
		return fmt.Errorf("keep the base's contents: %w", err)
	}
	s.BaseKept = true
	return nil
}
