package mode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// salvageIgnored is how many bytes of new ignored files go into the salvage of a
// workspace; the smallest first.
const salvageIgnored = 256 << 20

// Disposal is what has to be looked after before a workspace goes.
type Disposal struct {
	Salvage *salvage.Record  // nil when there was nothing to salvage
	Large   []snapshot.Entry // changed files that are too big for the store, and moved
	Ignored []snapshot.Entry // the same among those that no patch would hold
}

// SalvageWorkspace keeps what the workspace of an isolated session holds beyond
// its base: changes, and what the program made that is in no patch (ignored
// files, those that an exclude pattern covers, nested repositories' own files)
// up to a limit. Large files are left to dispose.
func SalvageWorkspace(ctx context.Context, s *site.Site, why string) (d Disposal, err error) {
	if gone, err := WorkspaceGone(s); err != nil || gone != "" {
		return d, err
	}
	base, err := s.LoadBase()
	if err != nil { // then all of it counts as new
		if base, err = NoBase(s); err != nil {
			return d, err
		}
		s.Base = base
	}
	l := &Look{}
	if !isOrphan(s) { // its large files go into the store
		l.Base = base
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	mine := Of(s.Rec.Mode).WorkTree && (s.Rec.CommonDir != "" || isOrphan(s)) // elsewhere the program made it
	own := func(path superqode.RelPath, _ snapshot.Kind) bool { return path == ".git" && mine }
	if err = l.scanWorkspace(ctx, s, own); err != nil {
		return d, fmt.Errorf("scan the workspace: %w", err)
	}
	part := salvage.Part{Dir: l.dir, LeftOut: LeftOutOf(l.Problems)}
	l.Problems = nil
	extra, beyond, err := dropLarge(ctx, s, l)
	if err != nil {
		return d, err
	}
	part.LeftOut = append(part.LeftOut, beyond...)
	if err := l.HashAll(ctx); err != nil {
		return d, err
	}
	for _, c := range snapshot.Compare(base, l.Final, snapshot.CompareOptions{Dirs: true}) {
		switch e := l.Final.Find(c.Path); {
		case e == nil:
		case s.Rec.Overlay != nil && e.Path == ".superqode" && e.Kind == snapshot.Dir: // a mount's place
		case !e.IsLarge() || isOrphan(s):
			part.Entries = append(part.Entries, *e)
		case extra[e.Path]:
			d.Ignored = append(d.Ignored, *e)
		default:
			d.Large = append(d.Large, *e)
		}
	}
	d.Salvage, err = s.Salvage(ctx, why, part)
	return d, err
}

// LeftOutOf is what a scan could not read, as a salvage names it.
func LeftOutOf(problems []snapshot.Problem) []salvage.LeftOut {
	var left []salvage.LeftOut
	for _, p := range problems {
		left = append(left, salvage.LeftOut{Path: p.Path, Reason: p.Err.Error()})
	}
	return left
}

// NoBase stands in for a base that cannot be read.
func NoBase(s *site.Site) (*snapshot.Snapshot, error) {
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	return &snapshot.Snapshot{Root: s.WorkDir(), Format: format}, err
}

// dropLarge returns the new files that no patch would hold. It takes the biggest
// of them out of the look until the others fit into the limit, and names those.
func dropLarge(ctx context.Context, s *site.Site, l *Look) (map[superqode.RelPath]bool, []salvage.LeftOut, error) {
	wanted := *l.Final
	skip, dropped := Skip(s), superqode.RelPath("")
	wanted.Entries = slices.DeleteFunc(slices.Clone(l.Final.Entries), func(e snapshot.Entry) bool {
		if dropped != "" && superqode.Within(e.Path, dropped) {
			return true
		}
		if !skip(e.Path, e.Kind) {
			return false
		}
		dropped = e.Path
		return true
	})
	if _, _, err := dropIgnored(ctx, s, &wanted); err != nil {
		return nil, nil, err
	}
	var extra []*snapshot.Entry
	for i := range l.Final.Entries {
		e := &l.Final.Entries[i]
		if e.Kind == snapshot.File && wanted.Find(e.Path) == nil && s.Base.Find(e.Path) == nil {
			extra = append(extra, e)
		}
	}
	slices.SortStableFunc(extra, func(a, b *snapshot.Entry) int { return cmp.Compare(a.Size, b.Size) })
	var left []salvage.LeftOut
	in, out, total := map[superqode.RelPath]bool{}, map[superqode.RelPath]bool{}, int64(0)
	for _, e := range extra {
		if total += e.Size; total <= salvageIgnored {
			in[e.Path] = true
			continue
		}
		out[e.Path] = true
		left = append(left, salvage.LeftOut{Path: e.Path, Reason: fmt.Sprintf("%s that git ignores, beyond the limit of %s", text.Size(e.Size), text.Size(salvageIgnored))})
	}
	l.Final.Entries = slices.DeleteFunc(l.Final.Entries, func(e snapshot.Entry) bool { return out[e.Path] })
	return in, left, nil
}

// MoveOut moves large files that are still in the workspace into the session's
// folder. Their permissions may have been widened for reading meanwhile, so it
// looks again.
func MoveOut(ctx context.Context, s *site.Site, files []snapshot.Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(files) == 0 || !atomicfile.Exists(string(s.Rec.Workspace)) {
		return nil
	}
	now, _, err := snapshot.Scan(ctx, written(s), snapshot.ScanOptions{Format: s.Base.Format, Contents: snapshot.StatOnly})
	if err != nil {
		return err
	}
	var there []snapshot.Entry
	for _, f := range files {
		if e := now.Find(f.Path); e.IsLarge() {
			there = append(there, *e)
		}
	}
	_, err = s.MoveLarge(ctx, written(s), there)
	return err
}

// Saved returns the ids of what was saved before the origin was brought back, by an
// earlier attempt at the session's end as well.
func Saved(s *site.Site) (ids []string) {
	list, err := salvage.Read(s.Folder, s.Rec.ID)
	if err != nil {
		return s.Salvages
	}
	slices.SortFunc(list, func(a, b salvage.Record) int { return a.N - b.N })
	for _, sv := range list {
		if sv.Why == "revert" {
			ids = append(ids, sv.ID)
		}
	}
	return ids
}

// ownWorkspace refuses to remove a folder that is not where the session's own
// workspace lies: a program may have written into the record.
func ownWorkspace(s *site.Site) error {
	id, dir, name := s.Rec.ID.String(), superqode.RealPrefix(filepath.Join(s.Project.Dir, "qe")), filepath.Base(string(s.Rec.Workspace))
	if !atomicfile.Exists(string(s.Rec.Workspace)) {
		return nil // removed, or the whole home was moved
	}
	holder := s.Project.Leased(name) // "" where the lease was lost
	if superqode.RealPrefix(filepath.Dir(string(s.Rec.Workspace))) != dir || holder != id && holder != "" {
		return superqode.Errorf(superqode.ErrConflict, "the record of session %s names %s as its workspace, which is not superqode's to remove; its own is %s", s.Rec.ID, s.Rec.Workspace, s.Project.WorkspacePath(id))
	}
	return nil
}

// Differs tells, in words, how the origin of an in-place session is not as it
// was; "" means that it is.
func Differs(ctx context.Context, s *site.Site) (_ string, err error) {
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	base, err := s.LoadBase()
	if err != nil {
		return "", err
	}
	trees := []*revert.Tree{{Dir: string(s.Rec.Origin), Base: base, Skip: Skip(s)}}
	if Of(s.Rec.Mode).Restores {
		repo, err := aside.RepositoryTree(s)
		if err != nil {
			return "", err
		}
		trees = append(trees, repo)
	}
	var diffs []string
	for _, t := range trees {
		v, err := t.Verify(ctx, revert.Stat, nil)
		if err != nil {
			return "", err
		}
		diffs = append(diffs, v.Differences...)
	}
	return text.FirstOf(diffs), nil
}

// SalvageAside keeps the copies of an in-place session that the origin could be
// brought back from: those of the work tree, and below git-dir those of the
// repository.
func SalvageAside(ctx context.Context, s *site.Site) (*salvage.Record, error) {
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return nil, err
	}
	var parts []salvage.Part
	for _, part := range []salvage.Part{{Dir: filepath.Join(s.AsideDir(), "tree")}, {Dir: filepath.Join(s.AsideDir(), "git"), Prefix: "git-dir"}} {
		sn, problems, err := snapshot.Scan(ctx, part.Dir, snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		part.Entries, part.LeftOut = sn.Entries, LeftOutOf(problems)
		parts = append(parts, part)
	}
	return s.Salvage(ctx, "what the origin was, let go by cleanup", parts...)
}

// OrphanPrefix begins the name of a folder in which the list of an orphan's
// salvage is made; the store keeps it.
const OrphanPrefix = ".orphan-"

// isOrphan reports whether the session stands for an orphan: its folder goes with
// it, so all that is kept must be in the store.
func isOrphan(s *site.Site) bool { return strings.HasPrefix(filepath.Base(s.Folder), OrphanPrefix) }
