package layers

import (
	"context"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// OpenNested guards the user's other repositories in the origin, where that is
// the workspace: a program may make repositories there as it likes, and must leave
// those alone that it found.
func (g *Guard) OpenNested(ctx context.Context) error {
	r := &g.Rec.Guard
	if !mode.Of(g.Rec.Mode).InPlace || g.Base == nil || len(files(*r)) == 0 {
		return nil
	}
	if r.Nested = nestedRepositories(string(g.Rec.Origin), string(g.Rec.CommonDir), g.Base); len(r.Nested) == 0 {
		return nil
	}
	st, err := g.state(ctx)
	if err == nil {
		err = g.fill(ctx, st, *r, nil)
	}
	if err != nil {
		return err
	}
	return g.Save()
}

// nestedRepositories returns the git directories of the repositories below dir
// that are not the one at common, nor its submodules.
func nestedRepositories(dir, common string, tree *snapshot.Snapshot) []state.HostPath {
	list := []state.HostPath{}
	for i := range tree.Entries {
		e := &tree.Entries[i]
		if e.Path.Name() != ".git" || mode.InsideGit(e.Path.Parent()) {
			continue
		}
		sub := e.Path.Parent().In(dir)
		f := guard.FindRepository(sub, nil, "", "")
		if f.WorkTree != sub || f.CommonDir == "" || common != "" && superqode.Within(f.CommonDir, common) ||
			slices.Contains(list, state.HostPath(f.CommonDir)) {
			continue
		}
		list = append(list, state.HostPath(f.CommonDir))
	}
	return list
}
