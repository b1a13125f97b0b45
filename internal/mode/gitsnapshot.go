package mode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// gitSnapshotKind is git_snapshot mode: the program works in the origin, and both
// the origin's files and its repository are brought back in the end.
type gitSnapshotKind struct{ inPlaceKind }

// DefaultIgnoredBudget is how many bytes of ignored files a git_snapshot session
// keeps copies of.
const DefaultIgnoredBudget = 256 << 20

func (k gitSnapshotKind) Check(ctx context.Context, h *site.Host, o *site.Origin, opt Options) (Options, error) {
	opt, err := k.inPlaceKind.Check(ctx, h, o, opt)
	if err == nil && o.Repo == nil {
		err = superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is not a git repository, and git_snapshot mode needs one", o.Top), "superqode run --snapshot -- CMD")
	}
	return opt, err
}

// Make records the origin as it is: what has to be brought back.
func (k gitSnapshotKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	if err := k.record(s); err != nil {
		return nil, err
	}
	var survey *linked.Survey
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		survey, err = linked.Look(gctx, s.Source.Repo, opt.Format, nil)
		return err
	})
	g.Go(func() error { return aside.KeepRepository(gctx, s, opt.Format) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	failpoint.Hit("inplace.surveyed")
	if err := leaveOut(s, survey, opt); err != nil {
		return nil, err
	}
	if err := keepTree(ctx, s, survey); err != nil {
		unreadable, ok := errors.AsType[aside.UnreadableError](err)
		if !ok {
			return nil, err
		}
		out := map[superqode.RelPath]string{}
		for _, p := range unreadable {
			out[p.Path] = os.ErrPermission.Error()
		}
		dropPaths(s, survey, out)
	}
	s.Base = survey.Tree
	if err := writePaths(s, state.IgnoredFile, slices.Values(survey.Ignored)); err != nil {
		return nil, err
	}
	failpoint.Hit("inplace.kept")
	return nil, treecopy.Sync(s.Folder)
}

// leaveOut takes out of the survey what the session cannot, or should not,
// protect, and names it: those paths are left alone in the end. What would have
// to be left out because it is too big is an error instead.
func leaveOut(s *site.Site, survey *linked.Survey, opt Options) error {
	out := map[superqode.RelPath]string{}
	for _, p := range survey.Problems {
		if p.Path == "" {
			return fmt.Errorf("read the origin: %w", p)
		}
		out[p.Path] = p.Err.Error()
	}
	own := ownOutput()
	for i := range survey.Tree.Entries {
		if e := &survey.Tree.Entries[i]; own(e) {
			out[e.Path] = isOutput
		}
	}
	if len(opt.LeaveOut) > 0 {
		skip := excluded(opt.LeaveOut)
		for _, dir := range survey.Ignored {
			if skip(dir) {
				out[dir] = "left out by --leave-out"
			}
		}
	}
	dropPaths(s, survey, out)
	return checkBudget(s, survey, opt)
}

// dropPaths removes paths, and what lies below them, from the survey.
func dropPaths(s *site.Site, survey *linked.Survey, out map[superqode.RelPath]string) {
	if len(out) == 0 {
		return
	}
	gone := func(path superqode.RelPath) bool {
		for p := path; p != ""; p = p.Parent() {
			if _, ok := out[p]; ok {
				return true
			}
		}
		return false
	}
	survey.Tree.Entries = slices.DeleteFunc(survey.Tree.Entries, func(e snapshot.Entry) bool { return gone(e.Path) })
	survey.Ignored = slices.DeleteFunc(survey.Ignored, gone)
	for path, why := range out {
		s.Rec.LeftOut = append(s.Rec.LeftOut, state.HostPath(path))
		s.Warn(text.Printable(path) + " is not protected and will be left as the session leaves it: " + why)
	}
	slices.Sort(s.Rec.LeftOut)
}

// checkBudget refuses to start where the ignored files take more room than the
// budget and cannot be cloned.
func checkBudget(s *site.Site, survey *linked.Survey, opt Options) error {
	budget := opt.IgnoredBudget
	if budget == 0 {
		budget = DefaultIgnoredBudget
	}
	sizes, total := ignoredSizes(survey.Tree, survey.Ignored)
	if total <= budget || treecopy.CanClone(s.Source.Top, s.Folder) {
		return nil
	}
	var names []string
	for _, f := range sizes[:min(len(sizes), 5)] {
		names = append(names, fmt.Sprintf("%s %s", text.Printable(f.name), text.Size(f.size)))
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "the files that git ignores take %s, more than git_snapshot mode keeps copies of (%s): %s", text.Size(total), text.Size(budget), strings.Join(names, ", ")),
		"--ignored-budget %dM keeps them all; --leave-out %s leaves that one unprotected", (total>>20)+1, text.QuotePOSIX(string(sizes[0].name)))
}

// Skip covers superqode's own files and what is not protected.
func (gitSnapshotKind) Skip(s *site.Site) snapshot.Skip {
	out := make(pathSet, len(s.Rec.LeftOut))
	for _, p := range s.Rec.LeftOut {
		out[superqode.RelPath(p)] = true
	}
	return func(path superqode.RelPath, kind snapshot.Kind) bool {
		return linked.SkipInPlace(path, kind) || out[path]
	}
}

func (gitSnapshotKind) patchable(s *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	ignored, err := readPaths(s, state.IgnoredFile)
	if err != nil {
		return nil, err
	}
	return patchable(sn, ignored), nil
}

// Revert brings back the repository when all is reverted, and the files.
func (gitSnapshotKind) Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	var repo *revert.Restored
	var err error
	switch {
	case len(opt.Paths) > 0:
	case opt.DryRun:
		repo, err = aside.RestoreRepository(ctx, s, opt.How, true)
	default:
		if err = opt.Forget(ctx); err != nil { // a damaged repository must not wait for them
			s.Warn(err.Error())
		}
		repo, err = bringBackRepository(ctx, s, opt.How)
	}
	if err != nil {
		return err
	}
	tree, err := originTree(ctx, s)
	if err != nil {
		return err
	}
	if err := known(ctx, s, tree, opt.Paths); err != nil {
		return err
	}
	res, err := restoreTree(ctx, s, revert.RestoreOptions{Within: opt.Paths, How: opt.How, DryRun: opt.DryRun})
	if res != nil {
		r.Restored = *res
	}
	if err != nil || repo == nil {
		return err
	}
	r.Paths = append(inGitDir(repo.Paths), r.Paths...)
	r.Differences = append(inGitDir(repo.Differences), r.Differences...)
	r.Verified = r.Verified && repo.Verified
	return nil
}

// Verify compares the origin and, when all is asked for, its repository.
func (gitSnapshotKind) Verify(ctx context.Context, s *site.Site, how revert.Method, paths []superqode.RelPath) (*revert.Verified, error) {
	tree, err := originTree(ctx, s)
	if err != nil {
		return nil, err
	}
	v, err := tree.Verify(ctx, how, paths)
	if err != nil || len(paths) > 0 {
		return v, err
	}
	more, err := verifyRepository(ctx, s, how)
	if err != nil {
		return nil, err
	}
	v.Differences = append(v.Differences, more...)
	return v, nil
}

func (gitSnapshotKind) Secure(ctx context.Context, s *site.Site) (*revert.Restored, error) {
	return bringBackRepository(ctx, s, revert.Stat)
}

func (gitSnapshotKind) BringBack(ctx context.Context, s *site.Site, seen *revert.Seen) (*revert.Restored, error) {
	defer s.Begin("bringing your files back", nil)()
	return restoreTree(ctx, s, revert.RestoreOptions{Seen: seen})
}

// Origin compares an origin that was not brought back, and its repository.
func (k gitSnapshotKind) Origin(ctx context.Context, s *site.Site, _ []superqode.Change) (*artifacts.OriginCheck, error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, err
	}
	repo, err := aside.RepositoryTree(s)
	if err != nil {
		return nil, err
	}
	check := &artifacts.OriginCheck{}
	for _, t := range []*revert.Tree{{Dir: string(s.Rec.Origin), Base: base, Skip: k.Skip(s)}, repo} {
		v, err := t.Verify(ctx, revert.Stat, nil)
		if err != nil {
			return nil, err
		}
		check.Differences = append(check.Differences, v.Differences...)
	}
	return check, nil
}
