package mode

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
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
	return aside.Copy(ctx, s, wanted, "tree", tree)
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
