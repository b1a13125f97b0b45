package mode

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// sharedKind is shared mode: the program works in the origin, and nothing is
// brought back.
type sharedKind struct{ inPlaceKind }

// Make records the origin for a comparison at the end. Only what the patch may
// need is read.
func (k sharedKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	if err := k.record(s); err != nil {
		return nil, err
	}
	if s.Source.Repo == nil {
		return nil, k.makePlain(ctx, s, opt)
	}
	survey, err := linked.Look(ctx, s.Source.Repo, opt.Format, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range survey.Problems {
		s.Warn(text.Printable(p.Path) + " cannot be read: " + p.Err.Error())
	}
	ignored := setOf(survey.Ignored)
	survey.Tree.Entries = slices.DeleteFunc(survey.Tree.Entries, func(e snapshot.Entry) bool { return ignored.covers(e.Path) || InsideGit(e.Path) })
	s.Base = survey.Tree
	return nil, onlyWarn(s, keepTree(ctx, s, survey))
}

// onlyWarn names files of a shared session's origin that cannot be read: their
// changes are unknown.
func onlyWarn(s *site.Site, err error) error {
	unreadable, ok := errors.AsType[aside.UnreadableError](err)
	if !ok {
		return err
	}
	for _, p := range unreadable {
		s.Warn(text.Printable(p.Path) + " cannot be read: " + os.ErrPermission.Error())
	}
	return nil
}

// makePlain is Make outside of git, where all contents are kept.
func (k sharedKind) makePlain(ctx context.Context, s *site.Site, opt Options) error {
	s.Rec.Exclude = opt.Exclude
	tree, problems, err := snapshot.Scan(ctx, s.Source.Top, snapshot.ScanOptions{Format: opt.Format, Contents: snapshot.StatOnly, Skip: k.Skip(s)})
	if err != nil {
		return err
	}
	for _, p := range problems {
		s.Warn(text.Printable(p.Path) + " cannot be read: " + p.Err.Error())
	}
	if err := checkSize(tree.Root, tree, opt.MaxBytes); err != nil {
		return err
	}
	wanted := tree.Only(func(e *snapshot.Entry) bool { return e.Kind == snapshot.File })
	s.Base = tree
	return onlyWarn(s, aside.Copy(ctx, s, wanted, "tree", tree))
}

func (sharedKind) Skip(s *site.Site) snapshot.Skip {
	return without(SkipOrigin, s.Rec.Exclude)
}

func (sharedKind) Revert(_ context.Context, s *site.Site, _ RevertOptions, _ *Reverted) error {
	return Restorable(s)
}

func (sharedKind) Verify(_ context.Context, s *site.Site, _ revert.Method, _ []superqode.RelPath) (*revert.Verified, error) {
	return nil, Restorable(s)
}

// Restorable refuses sessions of a mode in which nothing is brought back. The
// error wraps ErrUsage.
func Restorable(s *site.Site) error {
	if Of(s.Rec.Mode).Restores {
		return nil
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "session %s works in %s mode, in which nothing is brought back", s.Rec.ID, s.Rec.Mode), "superqode workspace diff --session %s", s.Rec.ID)
}

// Origin names the changes: the base knows nothing of what git ignores, so they
// are all there is to tell.
func (sharedKind) Origin(_ context.Context, s *site.Site, changes []superqode.Change) (*artifacts.OriginCheck, error) {
	check := &artifacts.OriginCheck{NotCovered: []string{"what git ignores, and the repository: shared mode records the files only"}}
	if s.Rec.Final.Digest.IsZero() {
		check.Differences = []string{"not checked: what the session changed could not be collected"}
	}
	for _, c := range changes {
		check.Differences = append(check.Differences, text.Printable(c.Path.String())+": "+string(c.Type))
	}
	return check, nil
}
