package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// guardNested guards the user's other repositories in the origin, where that is
// the workspace: a program may make repositories there as it likes, and must leave
// those alone that it found.
func (s *Session) guardNested(ctx context.Context) error {
	r := &s.Rec.Guard
	if !s.Rec.Mode.InPlace() || s.Base == nil || len(guardFiles(*r)) == 0 {
		return nil
	}
	if r.Nested = nestedRepositories(string(s.Rec.Origin), string(s.Rec.CommonDir), s.Base); len(r.Nested) == 0 {
		return nil
	}
	st, err := s.guardState(ctx)
	if err == nil {
		err = s.makeGuard(ctx, st, *r, nil)
	}
	if err != nil {
		return err
	}
	return s.Save()
}

// nestedRepositories returns the git directories of the repositories below dir
// that are not the one at common, nor its submodules.
func nestedRepositories(dir, common string, tree *snapshot.Snapshot) []state.HostPath {
	list := []state.HostPath{}
	for i := range tree.Entries {
		e := &tree.Entries[i]
		if e.Kind != snapshot.Dir || mode.InsideGit(e.Path) {
			continue
		}
		sub := filepath.Join(dir, e.Path)
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil {
			continue
		}
		f := guard.FindRepository(sub, nil, "", "")
		if f.WorkTree != sub || f.CommonDir == "" || common != "" && superqode.Within(f.CommonDir, common) || slices.Contains(list, state.HostPath(f.CommonDir)) {
			continue
		}
		list = append(list, state.HostPath(f.CommonDir))
	}
	return list
}
