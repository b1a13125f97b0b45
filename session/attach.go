package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Attach opens a session that exists, for Exec, Changes, Diff and End. Several
// processes may be attached at once; the one that ends the session waits for
// none of them and gets an error that it is locked.
func (m *Manager) Attach(ctx context.Context, dir, ref string) (*Session, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, err
	}
	m.noticeDead(m.session(l).Project)
	if l.Dead && mode.Of(l.Mode).InPlace { // recovered by now
		if l, err = m.find(ctx, dir, l.ID.String()); err != nil {
			return nil, err
		}
	}
	return m.attach(l)
}

func (m *Manager) attach(l state.Listed) (*Session, error) {
	s := m.session(l)
	if l.State == superqode.StateDone {
		return s, nil
	}
	unlock, err := lockfile.TryShare(state.LockPath(s.Folder))
	if errors.Is(err, lockfile.ErrHeld) {
		// `run` holds its session alone; looking at it is no harm.
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.unlock = unlock
	if err := s.Reload(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// of makes the Session of a place.
func (m *Manager) of(at *site.Site) *Session {
	s := &Session{m: m}
	s.move(at)
	return s
}

// move makes at the place of the session and of all that works there for it.
func (s *Session) move(at *site.Site) {
	s.Site, s.Authorship = at, attribution.Of(at)
	s.Program = &program.Program{Site: at, Authors: s.Authorship}
}

// session makes the Session of a record without taking any lock.
func (m *Manager) session(l state.Listed) *Session {
	return m.of(m.At(l))
}

// own takes the session for this process alone, as ending it requires.
func (s *Session) own() error {
	if err := s.Close(); err != nil {
		return err
	}
	unlock, err := lockfile.TryLock(state.LockPath(s.Folder))
	if errors.Is(err, lockfile.ErrHeld) {
		return s.inUse()
	}
	if err != nil {
		return err
	}
	s.unlock = unlock
	return s.Reload()
}

// inUse is the error of what needs a lock that another process holds.
func (s *Session) inUse() error {
	runs, _ := program.Runs(&state.Listed{Record: s.Rec, Dir: s.Folder}) // only for the hint
	for _, r := range runs {
		if r.State == program.RunRunning {
			return superqode.WithHint(superqode.Errorf(superqode.ErrLocked, "session %s is in use: its run %d is under way (%s)", s.Rec.ID, r.Run, text.Printable(strings.Join(r.Command, " "))),
				"superqode workspace kill --session %s --run %d, or superqode workspace end --session %s --force", s.Rec.ID, r.Run, s.Rec.ID)
		}
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrLocked, "session %s is in use by another process", s.Rec.ID), "wait for it, or end the program that runs there")
}

// noticeDead finishes an apply that was cut short, tells, in one line each, of
// sessions whose process died without ending them, and remembers to sweep what
// an interrupted removal left.
func (m *Manager) noticeDead(p state.Project) {
	m.touched = append(m.touched, p)
	if hasIntents(p) {
		m.noticeApply(p)
	}
	names, err := p.SessionNames()
	if err != nil {
		return // there is nothing to tell, and who asked has other work
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if _, err := os.Lstat(filepath.Join(dir, "tmp")); err != nil {
			continue // ended: its working folders are gone
		}
		l, err := state.Load(dir)
		switch {
		case errors.Is(err, state.ErrGone):
		case err != nil:
			m.Tell(fmt.Sprintf("session %s cannot be read: %v", id, err))
		case l.Dead && state.IsChild(&l): // its parent is reported
		case l.State == superqode.StateDone:
			if err := m.clearDone(l); err != nil {
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
