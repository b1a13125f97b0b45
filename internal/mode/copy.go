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

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// copyKind is what the modes have in common whose workspace is a plain copy.
type copyKind struct{ plain }

// checkCopy refuses what no copy can begin with.
func checkCopy(opt Options) error {
	if opt.From != FromWorking {
		return superqode.Errorf(superqode.ErrUsage, "--from %s needs worktree mode; %s mode starts from the files as they are", opt.From, opt.Mode)
	}
	for _, p := range opt.Exclude {
		if !doublestar.ValidatePattern(p) {
			return superqode.Errorf(superqode.ErrUsage, "exclude pattern %q is not valid", p)
		}
	}
	return nil
}

// templateMode refuses a template in a mode that makes no use of it.
func templateMode(opt Options) error {
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--template %s needs directory mode, not %s", text.Printable(opt.Template), opt.Mode), "superqode run --mode directory --template %s -- CMD", text.QuotePOSIX(opt.Template))
}

// excluded makes the test for exclude patterns. A pattern without a slash
// matches a name at any depth, one with a slash is relative to the root, and
// "x/**" covers the folder x itself.
func excluded(patterns []string) func(superqode.RelPath) bool {
	return func(p superqode.RelPath) bool {
		for _, pat := range patterns {
			if pat = strings.TrimSuffix(pat, "/"); !strings.Contains(pat, "/") {
				if ok, _ := doublestar.Match(pat, p.Name()); ok { // patterns were validated
					return true
				}
				continue
			}
			if ok, _ := doublestar.Match(pat, string(p)); ok {
				return true
			}
		}
		return false
	}
}

// fillCopy makes the workspace as a copy of what source returns: what it is to
// hold, and what of that could not be read.
func fillCopy(ctx context.Context, s *site.Site, opt Options, source func(unread []snapshot.Problem) (*snapshot.Snapshot, []snapshot.Problem, error)) ([]snapshot.Entry, error) {
	unread, err := captureOrigin(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	from, unread, err := source(unread)
	if err != nil {
		return nil, err
	}
	ws := string(s.Rec.Workspace)
	if err := os.Mkdir(ws, 0o700); err != nil {
		return nil, err
	}
	failpoint.Hit("copy.made")
	base, problems, err := treecopy.Copy(ctx, from, ws, treecopy.CopyOptions{Meter: s.Meter})
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", from.Root, err)
	}
	failpoint.Hit("copy.copied")
	for _, p := range append(unread, problems...) {
		s.Warn(text.Printable(p.Path) + " is not, or not whole, in the workspace: " + p.Err.Error())
	}
	s.Base = base
	return slices.DeleteFunc(slices.Clone(base.Entries), func(e snapshot.Entry) bool {
		return e.Kind != snapshot.File && e.Kind != snapshot.Link
	}), nil
}

// captureOrigin records the origin for the check at the end, and returns what of
// it could not be read.
func captureOrigin(ctx context.Context, s *site.Site, opt Options) (problems []snapshot.Problem, err error) {
	if s.Source.Repo != nil && !s.Source.Repo.Bare {
		if s.RepoState, err = revert.Capture(s.Source.Repo, filepath.Join(s.Folder, "state")); err != nil {
			return nil, err
		}
	}
	s.OriginBase, problems, err = snapshot.Scan(ctx, s.Source.Top, snapshot.ScanOptions{Format: opt.Format, Contents: snapshot.StatOnly, Skip: SkipOrigin})
	if err != nil {
		return nil, fmt.Errorf("scan the origin: %w", err)
	}
	s.Log.Debug().Int("entries", len(s.OriginBase.Entries)).Int("problems", len(problems)).Msg("origin scanned")
	return problems, nil
}

// checkSize refuses a copy above the limit and names the folders that make it
// big.
func checkSize(what string, sn *snapshot.Snapshot, limit int64) error {
	_, total := sn.Count()
	if limit <= 0 || total <= limit {
		return nil
	}
	sizes := map[string]int64{}
	for _, e := range sn.Entries {
		top, _, nested := strings.Cut(string(e.Path), "/")
		if !nested {
			top = "."
		}
		sizes[top] += e.Size
	}
	type folder struct {
		name string
		size int64
	}
	var list []folder
	for n, size := range sizes {
		list = append(list, folder{n, size})
	}
	slices.SortFunc(list, func(a, b folder) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, f := range list[:min(len(list), 5)] {
		names = append(names, fmt.Sprintf("%s %s", text.Printable(f.name), text.Size(f.size)))
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "a copy of %s would take %s, more than workspace.max_size_mb allows (%s); the biggest folders are %s",
		what, text.Size(total), text.Size(limit), strings.Join(names, ", ")), "raise workspace.max_size_mb in superqode.yaml, or in snapshot mode add to workspace.exclude_patterns")
}

// snapshotKind is snapshot mode: a copy of the origin without what is excluded.
type snapshotKind struct{ copyKind }

func (snapshotKind) Check(_ context.Context, _ *site.Host, _ *site.Origin, opt Options) (Options, error) {
	if err := checkCopy(opt); err != nil || opt.Template == "" {
		return opt, err
	}
	return opt, templateMode(opt)
}

func (snapshotKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	s.Rec.Exclude = opt.Exclude
	return fillCopy(ctx, s, opt, func(unread []snapshot.Problem) (*snapshot.Snapshot, []snapshot.Problem, error) {
		skip := excluded(opt.Exclude)
		sn := s.OriginBase.With(nil)
		dropped := ""
		for _, e := range s.OriginBase.Entries {
			if dropped != "" && strings.HasPrefix(string(e.Path), dropped) {
				continue
			}
			if skip(e.Path) {
				if e.Kind == snapshot.Dir {
					dropped = string(e.Path) + "/"
				}
				continue
			}
			sn.Entries = append(sn.Entries, e)
		}
		unread = slices.DeleteFunc(unread, func(p snapshot.Problem) bool {
			for at := p.Path; at != ""; at = at.Parent() {
				if skip(at) {
					return true
				}
			}
			return false
		})
		return sn, unread, checkSize(sn.Root, sn, opt.MaxBytes)
	})
}

// directoryKind is directory mode: an empty folder, or a copy of a template with
// all that is in it. A repository that came with the template is the workspace's
// own.
type directoryKind struct{ copyKind }

func (directoryKind) Check(_ context.Context, h *site.Host, _ *site.Origin, opt Options) (Options, error) {
	if err := checkCopy(opt); err != nil {
		return opt, err
	}
	if opt.Exclude = nil; opt.Template == "" {
		return opt, nil
	}
	st, err := os.Stat(opt.Template)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return opt, superqode.Errorf(superqode.ErrNotFound, "template %s does not exist", text.Printable(opt.Template))
	case err != nil:
		return opt, err
	case !st.IsDir():
		return opt, superqode.Errorf(superqode.ErrUsage, "template %s is not a directory", text.Printable(opt.Template))
	}
	template, err := filepath.EvalSymlinks(opt.Template)
	if err != nil {
		return opt, err
	}
	home := superqode.RealPrefix(h.Home)
	if home == template || strings.HasPrefix(home, strings.TrimSuffix(template, "/")+"/") {
		return opt, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "template %s holds superqode's own state (%s), where the copy of it would lie", text.Printable(opt.Template), home), "superqode --home DIR … with a folder outside of it")
	}
	return opt, nil
}

func (directoryKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	return fillCopy(ctx, s, opt, func([]snapshot.Problem) (*snapshot.Snapshot, []snapshot.Problem, error) {
		if opt.Template == "" {
			return &snapshot.Snapshot{Root: s.Source.Top, Format: opt.Format, Taken: s.Now()}, nil, nil
		}
		template, err := filepath.EvalSymlinks(opt.Template)
		if err != nil {
			return nil, nil, err
		}
		if template, err = filepath.Abs(template); err != nil {
			return nil, nil, err
		}
		if ws := superqode.RealPrefix(string(s.Rec.Workspace)); strings.HasPrefix(ws, template+"/") {
			return nil, nil, superqode.Errorf(superqode.ErrUsage, "template %s holds superqode's own state, where the copy of it would lie", text.Printable(opt.Template))
		}
		sn, unread, err := snapshot.Scan(ctx, template, snapshot.ScanOptions{Format: opt.Format, Contents: snapshot.StatOnly})
		if err != nil {
			return nil, nil, err
		}
		return sn, unread, checkSize(sn.Root, sn, opt.MaxBytes)
	})
}

func (directoryKind) Skip(*site.Site) snapshot.Skip {
	return func(superqode.RelPath, snapshot.Kind) bool { return false }
}

func (directoryKind) patchable(_ *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	return patchable(sn, nil), nil
}
