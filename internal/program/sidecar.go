package program

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// sidecar is what goes on next to one run of a program and ends with it: its
// agent's claims, and the watching.
type sidecar struct {
	s      *Program
	claims *coordinator.Handler
	watch  *watching
}

func (s *Program) openSidecar(opt ExecOptions) *sidecar {
	b := &sidecar{s: s, claims: s.claimRun().Handle()}
	if !opt.Setup {
		b.watch = s.StartWatching()
	}
	return b
}

func (b *sidecar) handlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	return b.claims.AddTo(m)
}

func (b *sidecar) close(ctx context.Context) error {
	return errors.Join(b.claims.Close(ctx), b.s.StopWatching(b.watch))
}

// claimRun is what a program of the session may ask for.
func (s *Program) claimRun() coordinator.Run {
	id := s.PublicID()
	return coordinator.Run{
		Project: s.Project.Dir, Agent: s.Actor(), Session: id, Folder: s.Folder, Public: s.Project.SessionPath(id.String()), Base: s.ClaimBase(),
	}
}

func (s *Program) ClaimBase() *coordinator.Base {
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
