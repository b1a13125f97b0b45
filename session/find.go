package session

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Find returns the session that ref names; docs/formats.md says how. It returns
// an error that wraps ErrNotFound or, when ref is ambiguous, ErrUsage.
func (m *Manager) Find(ctx context.Context, dir, ref string) (*state.Listed, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// find is Find for a session that may have been cleaned up since: then the error
// says what is left of it.
func (m *Manager) find(ctx context.Context, dir, ref string) (state.Listed, error) {
	l, err := registry.Resolve(ctx, m.Host, dir, ref)
	if errors.Is(err, superqode.ErrNotFound) && ref != "" {
		if s, rerr := m.reported(ctx, dir, ref); rerr == nil {
			err = superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s was cleaned up; its report and other artifacts are left", s.Rec.ID), "superqode artifacts list --session %s", s.Rec.ID)
		}
	}
	return l, err
}

// List returns the sessions of the origin around dir, or of every origin, newest
// first, and those whose record cannot be read.
func (m *Manager) List(ctx context.Context, dir string, all bool) ([]state.Listed, []state.Broken, error) {
	return registry.List(ctx, m.Host, dir, all)
}
