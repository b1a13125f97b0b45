package mode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// DefaultIgnoredBudget is how many bytes of ignored files a git_snapshot session
// keeps copies of.
const DefaultIgnoredBudget = 256 << 20

// planInPlace checks the options of the modes that work in the origin itself.
func planInPlace(o *site.Origin, opt Options) error {
	switch {
	case opt.From != FromWorking:
		return superqode.Errorf(superqode.ErrUsage, "--from %s needs worktree mode; %s mode works on the files as they are", opt.From, opt.Mode)
	case opt.Template != "":
		return templateMode(opt)
	case o.Repo != nil && o.Repo.Bare:
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to work in", o.Top), "git clone %s DIR && superqode -C DIR run -- CMD", o.Top)
	case o.Repo == nil && opt.Mode == superqode.ModeGitSnapshot:
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is not a git repository, and git_snapshot mode needs one", o.Top), "superqode run --snapshot -- CMD")
	}
	return nil
}

// FillInPlace records the origin as it is: what git_snapshot mode has to bring
// back, or what shared mode compares with in the end.
func FillInPlace(ctx context.Context, s *site.Site, opt Options) error {
	var err error
	if s.Rec.TopFolder, err = state.FolderInfoOf(s.Source.Top); err != nil {
		return err
	}
	if err := point(s); err != nil {
		return err
	}
	failpoint.Hit("inplace.pointed")
	if opt.Mode == superqode.ModeShared {
		return fillShared(ctx, s, opt)
	}
	var survey *linked.Survey
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		survey, err = linked.Look(gctx, s.Source.Repo, opt.Format, nil)
		return err
	})
	g.Go(func() error { return keepRepository(gctx, s, opt.Format) })
	if err := g.Wait(); err != nil {
		return err
	}
	failpoint.Hit("inplace.surveyed")
	if err := leaveOut(s, survey, opt); err != nil {
		return err
	}
	if err := keepTree(ctx, s, survey); err != nil {
		unreadable, ok := errors.AsType[unreadableError](err)
		if !ok {
			return err
		}
		out := map[string]string{}
		for _, p := range unreadable {
			out[p.Path] = os.ErrPermission.Error()
		}
		dropPaths(s, survey, out)
	}
	s.Base = survey.Tree
	if err := writeIgnored(s, survey.Ignored); err != nil {
		return err
	}
	failpoint.Hit("inplace.kept")
	return treecopy.Sync(s.Folder)
}

// leaveOut takes out of the survey what the session can not, or was told not to,
// protect, and names it: those paths are left alone in the end. What would have
// to be left out because it is too big is an error instead.
func leaveOut(s *site.Site, survey *linked.Survey, opt Options) error {
	out := map[string]string{}
	for _, p := range survey.Problems {
		if p.Path == "" {
			return fmt.Errorf("read the origin: %w", p)
		}
		out[p.Path] = p.Err.Error()
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
func dropPaths(s *site.Site, survey *linked.Survey, out map[string]string) {
	if len(out) == 0 {
		return
	}
	gone := func(path string) bool {
		for p := path; p != ""; p = snapshot.Parent(p) {
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
// budget and can not be cloned.
func checkBudget(s *site.Site, survey *linked.Survey, opt Options) error {
	budget := opt.IgnoredBudget
	if budget == 0 {
		budget = DefaultIgnoredBudget
	}
	sizes, total := ignoredSizes(survey)
	if total <= budget || treecopy.CanClone(s.Source.Top, s.Folder) {
		return nil
	}
	slices.SortFunc(sizes, func(a, b folderSize) int { return cmp.Compare(b.size, a.size) })
	var names []string
	for _, f := range sizes[:min(len(sizes), 5)] {
		names = append(names, fmt.Sprintf("%s %s", text.Printable(f.name), site.Megabytes(f.size)))
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "the files that git ignores take %s, more than git_snapshot mode keeps copies of (%s): %s", site.Megabytes(total), site.Megabytes(budget), strings.Join(names, ", ")),
		"--ignored-budget %dM keeps them all; --leave-out %s leaves that one unprotected", (total>>20)+1, site.QuoteWord(sizes[0].name))
}

type folderSize struct {
	name string
	size int64
}

// ignoredSizes sums up the topmost ignored paths.
func ignoredSizes(survey *linked.Survey) (sizes []folderSize, total int64) {
	at := -1
	ignored := survey.Ignored
	for i := range survey.Tree.Entries {
		e := &survey.Tree.Entries[i]
		if k, ok := slices.BinarySearch(ignored, e.Path); ok {
			sizes = append(sizes, folderSize{name: ignored[k]})
			at = len(sizes) - 1
		} else if at < 0 || !superqode.Within(e.Path, sizes[at].name) {
			if at = slices.IndexFunc(sizes, func(f folderSize) bool { return superqode.Within(e.Path, f.name) }); at < 0 {
				continue
			}
		}
		sizes[at].size += e.Size
		total += e.Size
	}
	return sizes, total
}

// keepTree copies aside what can not be had from the repository's objects, and
// fills in the content ids on the way.
func keepTree(ctx context.Context, s *site.Site, survey *linked.Survey) error {
	tree := survey.Tree
	unsaved := map[string]bool{}
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
// in sn what was copied. When all is copied but files that can not be read, the
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
		case errors.Is(p.Err, os.ErrNotExist) && name == "git" && isObject(p.Path):
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

// fillShared records the origin for a comparison at the end. Only what the patch
// may need is read.
func fillShared(ctx context.Context, s *site.Site, opt Options) error {
	if s.Source.Repo == nil {
		return fillSharedPlain(ctx, s, opt)
	}
	survey, err := linked.Look(ctx, s.Source.Repo, opt.Format, nil)
	if err != nil {
		return err
	}
	for _, p := range survey.Problems {
		s.Warn(text.Printable(p.Path) + " can not be read: " + p.Err.Error())
	}
	ignored := ignoredSet(survey.Ignored)
	survey.Tree.Entries = slices.DeleteFunc(survey.Tree.Entries, func(e snapshot.Entry) bool { return ignored.covers(e.Path) || InsideGit(e.Path) })
	s.Base = survey.Tree
	return onlyWarn(s, keepTree(ctx, s, survey))
}

// onlyWarn names files of a shared session's origin that can not be read: their
// changes can not be told.
func onlyWarn(s *site.Site, err error) error {
	unreadable, ok := errors.AsType[unreadableError](err)
	if !ok {
		return err
	}
	for _, p := range unreadable {
		s.Warn(text.Printable(p.Path) + " can not be read: " + os.ErrPermission.Error())
	}
	return nil
}

// fillSharedPlain is fillShared outside of git, where all contents are kept.
func fillSharedPlain(ctx context.Context, s *site.Site, opt Options) error {
	s.Rec.Exclude = opt.Exclude
	tree, problems, err := snapshot.Scan(ctx, s.Source.Top, snapshot.ScanOptions{Format: opt.Format, Contents: snapshot.StatOnly, Skip: Skip(s)})
	if err != nil {
		return err
	}
	for _, p := range problems {
		s.Warn(text.Printable(p.Path) + " can not be read: " + p.Err.Error())
	}
	if err := checkSize(tree, opt.MaxBytes); err != nil {
		return err
	}
	wanted := tree.Only(func(e *snapshot.Entry) bool { return e.Kind == snapshot.File })
	s.Base = tree
	return onlyWarn(s, copyAside(ctx, s, wanted, "tree", tree))
}
