package life

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Attach opens a session that exists, for Exec, Changes, Diff and End. Several
// processes may be attached at once; the one that ends the session waits for
// none of them and gets an error that it is locked.
func (m *Manager) Attach(ctx context.Context, dir, ref string) (*Session, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, err
	}
	m.NoticeDead(m.session(l).Project)
	if l.Dead && mode.Of(l.Mode).InPlace { // recovered by now
		if l, err = m.find(ctx, dir, l.ID.String()); err != nil {
			return nil, err
		}
	}
	return m.attach(l)
}

func (m *Manager) attach(l state.Listed) (*Session, error) {
	a, err := attach.Share(m.At(l))
	if err != nil {
		return nil, err
	}
	return &Session{Attached: a, m: m}, nil
}

// of makes the Session of a place.
func (m *Manager) of(at *site.Site) *Session { return &Session{Attached: attach.At(at), m: m} }

// session makes the Session of a record without taking any lock.
func (m *Manager) session(l state.Listed) *Session {
	return m.of(m.At(l))
}

// NoticeDead finishes an apply that was cut short, tells, in one line each, of
// sessions whose process died without ending them, and remembers to sweep what
// an interrupted removal left.
func (m *Manager) NoticeDead(p state.Project) {
	m.touched.Add(p)
	if apply.AnyPending(p) {
		apply.Notice(m.Host, p)
	}
	names, err := p.SessionNames()
	if err != nil {
		return // there is nothing to tell, and who asked has other work
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if !state.MayBeOpen(dir) {
			continue
		}
		l, err := state.Load(dir)
		switch {
		case errors.Is(err, state.ErrGone):
		case err != nil:
			m.Tell(fmt.Sprintf("session %s cannot be read: %v", id, err))
		case l.Dead && state.IsChild(&l): // its parent is reported
		case l.State == superqode.StateDone:
			if err := clearDone(m.Host, l); err != nil {
				m.Tell(fmt.Sprintf("session %s has ended, and its folders cannot be cleared: %v", id, err))
			}
		case l.Dead && mode.Of(l.Mode).Exclusive():
			if err := m.recoverDead(l); err != nil {
				m.Tell(err.Error())
			}
		case l.Dead:
			m.Tell(fmt.Sprintf("session %s died before it ended; superqode workspace recover --session %s", id, id[strings.LastIndexByte(id, '-')+1:]))
		}
	}
}

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
		if s, rerr := m.AttachReported(ctx, dir, ref); rerr == nil {
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
