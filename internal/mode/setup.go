package mode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// setupEffect is what the setup did: the paths of both snapshots.
type setupEffect struct {
	before, after *snapshot.Snapshot
}

func loadEffect(s *site.Site) (*setupEffect, error) {
	after, err := snapshot.Load(filepath.Join(s.Folder, state.SetupAfterFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, err := snapshot.Load(filepath.Join(s.Folder, state.SetupBeforeFile))
	return &setupEffect{before, after}, err
}

// StartFile keeps what the workspace held when a setup began, so that one that is
// killed is finished from there. A program that ran meanwhile makes it worthless.
func StartFile(s *site.Site) string {
	return filepath.Join(s.Folder, fmt.Sprintf("setup-start-%d.snap", s.Rec.Runs))
}

// BeforeSetup is what the workspace held before the setup. Before anybody was
// told of the session that is the base, and needs no look.
func BeforeSetup(ctx context.Context, s *site.Site, opening bool) (*snapshot.Snapshot, error) {
	if _, err := os.Lstat(StartFile(s)); err == nil {
		return snapshot.Load(StartFile(s))
	}
	if opening {
		if err := os.Link(filepath.Join(s.Folder, "base.snap"), StartFile(s)); err != nil {
			return nil, err
		}
		return s.LoadBase()
	}
	l, err := LookRaw(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return l.Final, l.Final.Save(StartFile(s))
}

// AfterSetup removes what only a killed setup needs.
func AfterSetup(s *site.Site) error {
	if err := os.Remove(StartFile(s)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// FoldSetup makes what the setup did since before part of the base.
func FoldSetup(ctx context.Context, s *site.Site, before *snapshot.Snapshot) (err error) {
	l, err := LookRaw(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if l.Gone != "" {
		return nil // there is nothing that could be part of anything
	}
	base, err := s.LoadBase()
	if err != nil {
		return err
	}
	if before, err = For(s.Rec.Mode).patchable(s, before); err != nil {
		return err
	}
	var touched []superqode.RelPath
	for _, c := range snapshot.Compare(before, l.Final, snapshot.CompareOptions{Dirs: true}) {
		touched = append(touched, c.Path)
	}
	effect, err := loadEffect(s)
	if err != nil {
		return err
	}
	if effect == nil {
		effect = &setupEffect{base.With(nil), base.With(nil)}
	}
	old, first := pathSet{}, []superqode.RelPath(nil)
	for _, e := range slices.Concat(effect.before.Entries, effect.after.Entries) {
		old[e.Path] = true
	}
	for _, p := range touched {
		if !old[p] {
			first = append(first, p)
		}
	}
	effect.before, effect.after = effect.before.WithOthers(first, base), effect.after.WithOthers(touched, l.Final)
	if err := addSetupIgnored(s, l.IgnoredPaths); err != nil {
		return err
	}
	if len(touched) == 0 {
		return nil
	}
	return saveEffect(ctx, s, effect, l, touched)
}

// saveEffect writes what the setup did and, in the isolated modes, the base anew.
func saveEffect(ctx context.Context, s *site.Site, effect *setupEffect, l *Look, touched []superqode.RelPath) error {
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	var fresh []snapshot.Entry
	for _, p := range touched {
		if e := l.Final.Find(p); e != nil && (e.Kind == snapshot.File || e.Kind == snapshot.Link) && !e.ID.IsZero() && !e.IsLarge() {
			fresh = append(fresh, *e)
		}
	}
	if !Of(s.Rec.Mode).InPlace && len(fresh) > 0 {
		if err := s.Store.WriteBlobs(ctx, l.Final.Root, fresh); err != nil {
			return fmt.Errorf("keep what the setup made: %w", err)
		}
	}
	if err := effect.before.Save(filepath.Join(s.Folder, state.SetupBeforeFile)); err != nil {
		return err
	}
	if err := effect.after.Save(filepath.Join(s.Folder, state.SetupAfterFile)); err != nil {
		return err
	}
	failpoint.Hit("setup.effect")
	if Of(s.Rec.Mode).InPlace {
		return nil
	}
	s.Base = s.Base.WithOthers(touched, l.Final)
	repo := s.RepoState
	s.OriginBase, s.RepoState = nil, nil // they are on disk as they were
	err := SaveBase(ctx, s)
	s.RepoState = repo
	if err != nil {
		return err
	}
	base := s.Rec.Base
	failpoint.Hit("setup.base")
	return s.Update(ctx, func(r *state.Record) { r.Base = base })
}

// WithoutSetup takes what the setup did out of a look, so that what is left is
// what the session's programs did.
func WithoutSetup(s *site.Site, l *Look) error {
	effect, err := loadEffect(s)
	if err != nil || effect == nil {
		return err
	}
	same, changed := effect.split(l.Final)
	if Of(s.Rec.Mode).InPlace {
		l.Final = l.Final.WithOthers(same, effect.before)
	} else if len(changed) > 0 {
		l.Base = l.Base.WithOthers(changed, effect.before)
	}
	return nil
}

// split sorts the paths that the setup touched into those that are as it left
// them and the others. Where it put a folder in a file's place, or the other way
// round, that place and all below it are among the others: half of such a change
// is no tree.
func (e *setupEffect) split(now *snapshot.Snapshot) (same, changed []superqode.RelPath) {
	paths := map[superqode.RelPath]bool{}
	turned := pathSet{}
	for _, sn := range []*snapshot.Snapshot{e.before, e.after} {
		for _, entry := range sn.Entries {
			paths[entry.Path] = true
			a, b := e.before.Find(entry.Path), e.after.Find(entry.Path)
			if a != nil && b != nil && (a.Kind == snapshot.Dir) != (b.Kind == snapshot.Dir) {
				turned[entry.Path] = true
			}
		}
	}
	there := e.after.With(nil)
	for p := range paths {
		if entry := now.Find(p); entry != nil {
			there.Entries = append(there.Entries, *entry)
		}
	}
	slices.SortFunc(there.Entries, snapshot.ByPath)
	differs := map[superqode.RelPath]bool{}
	for _, c := range snapshot.Compare(e.after, there, snapshot.CompareOptions{Dirs: true}) {
		differs[c.Path] = true
	}
	for p := range paths {
		if differs[p] || turned.covers(p) {
			changed = append(changed, p)
		} else {
			same = append(same, p)
		}
	}
	slices.Sort(same)
	slices.Sort(changed)
	return same, changed
}

// addSetupIgnored remembers the topmost ignored paths that a setup left.
func addSetupIgnored(s *site.Site, paths []superqode.RelPath) error {
	if len(paths) == 0 || Of(s.Rec.Mode).InPlace {
		return nil
	}
	set, err := SetupIgnored(s)
	if err != nil {
		return err
	}
	for _, p := range paths {
		set[p] = true
	}
	return writePaths(s, state.SetupIgnoredFile, maps.Keys(set))
}

// SetupIgnored are the ignored paths that the setup made.
func SetupIgnored(s *site.Site) (pathSet, error) {
	set, err := readPaths(s, state.SetupIgnoredFile)
	if errors.Is(err, os.ErrNotExist) {
		return pathSet{}, nil
	}
	return set, err
}
