package mode

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/revert"
)

// pathSet is a set of paths that stand for themselves and all below them.
type pathSet map[string]bool

func ignoredSet(paths []string) pathSet {
	set := make(pathSet, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// covers reports whether path is in the set or below a path of it.
func (set pathSet) covers(path string) bool {
	if len(set) == 0 {
		return false
	}
	for p := path; p != ""; p = snapshot.Parent(p) {
		if set[p] {
			return true
		}
	}
	return false
}

func writeIgnored(s *site.Site, paths []string) error {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return atomicfile.Write(filepath.Join(s.Folder, state.IgnoredFile), []byte(b.String()), 0o600)
}

func readIgnored(s *site.Site) (pathSet, error) {
	data, err := atomicfile.Read(filepath.Join(s.Folder, state.IgnoredFile))
	if err != nil {
		return nil, err
	}
	return ignoredSet(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")), nil
}

// patchable returns the part of a snapshot of the origin that a patch is about:
// nothing that git ignored when the session began, and no nested repository's
// own files.
func patchable(sn *snapshot.Snapshot, ignored pathSet) *snapshot.Snapshot {
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return InsideGit(e.Path) || ignored.covers(e.Path) })
	return &out
}

// InsideGit reports whether a path leads through a .git folder, or is one.
func InsideGit(path string) bool {
	return skipGit(path, 0) || strings.HasPrefix(path, ".git/") || strings.Contains(path, "/.git/")
}

// onlyPatchable takes out of a look what is brought back and in no patch.
func onlyPatchable(s *site.Site, l *Look) (err error) {
	if s.Rec.Mode != superqode.ModeGitSnapshot && s.Rec.Mode != superqode.ModeDirectory {
		return nil
	}
	l.Seen = &revert.Seen{Now: l.Final, Problems: l.Problems}
	if l.Base, err = patchablePart(s, l.Base); err != nil {
		return err
	}
	l.Final, err = patchablePart(s, l.Final)
	return err
}

// patchablePart is the part of a snapshot of the workspace that a patch is about.
func patchablePart(s *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	var ignored pathSet
	switch s.Rec.Mode {
	case superqode.ModeGitSnapshot:
		var err error
		if ignored, err = readIgnored(s); err != nil {
			return nil, err
		}
	case superqode.ModeDirectory:
	default:
		return sn, nil
	}
	return patchable(sn, ignored), nil
}

// skipUnprotected says what is no part of a git_snapshot session's snapshots.
func skipUnprotected(s *site.Site) func(string, snapshot.Kind) bool {
	out := make(pathSet, len(s.Rec.LeftOut))
	for _, p := range s.Rec.LeftOut {
		out[string(p)] = true
	}
	return func(path string, kind snapshot.Kind) bool { return linked.SkipInPlace(path, kind) || out[path] }
}

// KeepBase puts the contents of an in-place session's base that only its aside
// folder holds into the store, as far as the session changed them: the patch is
// made from there. The others of the base's tree have to be there too.
func KeepBase(ctx context.Context, s *site.Site, l *Look) error {
	if !s.Rec.Mode.InPlace() || s.BaseKept {
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
