package session

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// claimRun is what a program of the session may ask for.
func (s *Program) claimRun() coordinator.Run {
	id := s.PublicID()
	return coordinator.Run{
		Project: s.Project.Dir, Agent: s.Actor(), Session: id, Folder: s.Folder, Public: s.Project.SessionPath(id.String()), Base: s.claimBase(),
	}
}

func (s *Program) claimBase() *coordinator.Base {
	own := &site.Site{Host: s.Host, Project: s.Project, Source: s.Source, Folder: s.Folder, Rec: s.Rec, Distrusted: s.Distrusted}
	b := &coordinator.Base{Workspace: string(s.Rec.Workspace), List: filepath.Join(s.Folder, "base.snap"), Snapshot: s.Base, Open: func(ctx context.Context) (*store.Store, error) {
		err := own.OpenStore(ctx)
		return own.Store, err
	}}
	if mode.Of(s.Rec.Mode).InPlace {
		b.Aside = filepath.Join(s.AsideDir(), "tree")
	}
	return b
}
