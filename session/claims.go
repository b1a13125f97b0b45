package session

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
)

// The claims of an origin lie in its project's folder, so that all its sessions,
// and whoever works in the origin itself, see the same ones. The program in a
// session asks its supervisor (claimRun); everybody else comes by Manager.Claims.

// Claims returns the claims of the origin around dir. ref may name a session, or
// be "": then the claims are made outside of any. Nothing is made on disk.
func (m *Manager) Claims(ctx context.Context, dir, ref string) (*coordinator.Claims, error) {
	if ref != "" {
		l, err := m.find(ctx, dir, ref)
		if err != nil {
			return nil, err
		}
		s := m.session(l)
		place := coordinator.Place{Project: s.Project.Dir, Root: string(l.Workspace), Session: l.ID, Folder: s.Folder, Base: s.ClaimBase()}
		place.Ready = func(context.Context) error {
			if s.Rec.State == superqode.StateDone {
				return mode.Ended(s.Site)
			}
			return nil
		}
		return place.Open(), nil
	}
	p, err := registry.Locate(ctx, m.Host, dir)
	if err != nil {
		return nil, err
	}
	top, err := claimRoot(dir)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		if p.Exists() {
			return nil
		}
		o, err := m.Resolve(ctx, top)
		if err != nil {
			return err
		}
		if err := m.checkHome(o); err != nil {
			return err
		}
		return p.Create(o.Key(), m.Now())
	}
	return coordinator.Place{Project: p.Dir, Root: top, Ready: ready}.Open(), nil
}

// claimRoot returns the root of the work tree around dir, or the directory that
// is an origin of its own.
func claimRoot(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", site.NotFoundOr(err, dir)
	}
	for d := real; ; d = filepath.Dir(d) {
		if registry.CommonDirOf(d) != "" {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return real, nil
		}
	}
}

// endClaims releases what the session's agents still have when it ends.
func (s *Session) endClaims(ctx context.Context) error {
	return coordinator.OpenTable(s.Project.Dir).EndSession(ctx, s.Rec.ID)
}
