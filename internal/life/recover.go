package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Recovered tells what Recover did with one session.
type Recovered struct {
	ID     superqode.SessionID
	Action string // "rolled back", "ended", "preserved", of an apply "applied" or "taken back", of an open session "programs ended", or, with Err set, "failed"
	Err    error
}

// Recover finishes, or rolls back, the sessions of the origin around dir whose
// process died; ref names one of them, "" means all. Sessions that live are
// left alone; in one that is open, and in which nobody works, what a killed
// supervisor left is ended. Applies that were cut short come first.
func (m *Manager) Recover(ctx context.Context, dir, ref string) ([]Recovered, error) {
	var sessions []state.Listed
	var p state.Project
	var done []Recovered
	if ref != "" {
		l, err := m.find(ctx, dir, ref)
		if err != nil {
			return nil, err
		}
		sessions, p = []state.Listed{l}, m.session(l).Project
	} else {
		var err error
		if p, err = registry.Locate(ctx, m.Host, dir); err != nil {
			return nil, err
		}
		var broken []state.Broken
		if sessions, broken, err = registry.List(ctx, m.Host, dir, false); err != nil {
			return nil, err
		}
		for _, b := range broken {
			id, _ := superqode.ParseSessionID(b.ID) // the folder's name is one
			done = append(done, Recovered{id, "failed", b.Err})
		}
		if id, err := m.Gone(dir); err != nil {
			done = append(done, Recovered{id, "failed", err})
		}
		if err := gc.RemoveUnborn(p); err != nil {
			return nil, err
		}
	}
	applies, err := apply.Recover(ctx, m.Host, p)
	if err != nil {
		return nil, err
	}
	for _, a := range applies {
		done = append(done, Recovered(a))
	}
	for _, l := range sessions {
		switch {
		case l.Dead && state.IsChild(&l): // with its parent
		case l.Dead:
			done = append(done, m.recoverOne(ctx, l))
		case l.State == superqode.StateActive && !l.Alive:
			if r := recoverPrograms(m.Host, l); r != nil {
				done = append(done, *r)
			}
		case l.State == superqode.StateDone && atomicfile.Exists(filepath.Join(l.Dir, "tmp")):
			if err := clearDone(m.Host, l); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// Gone is the error about a session in place around dir that did not end, and of
// which nothing is left but that it was there; nil where there is none.
func (m *Manager) Gone(dir string) (id superqode.SessionID, err error) {
	if _, l, _, err := m.Pointed(dir); errors.Is(err, state.ErrGone) {
		return l.ID, err
	}
	return id, nil
}

func (m *Manager) recoverOne(ctx context.Context, l state.Listed) (r Recovered) {
	s := m.session(l)
	r = Recovered{ID: l.ID, Action: "failed"}
	defer func() {
		if r.Err != nil && superqode.Hint(r.Err) == "" {
			r.Err = superqode.WithHint(r.Err, "what the session kept is in %s; put right what is named, then: superqode workspace recover", text.QuotePOSIX(l.Dir))
		}
	}()
	alone, err := s.Own()
	if err != nil {
		r.Err = err
		return r
	}
	defer s.Close()
	if s.Rec.State.Ended() { // another recovery came first
		r.Action = endWord(s.Rec.State == superqode.StatePreserved)
		return r
	}
	if r.Err = alone.EndLeftovers(); r.Err != nil {
		return r
	}
	if s.Rec.State == superqode.StateCreated {
		if r.Err = errors.Join((&team.Ending{Attached: s.Attached}).Discard(), alone.Discard()); r.Err == nil {
			r.Action = "rolled back"
		}
		return r
	}
	res, err := s.end(ctx, alone, EndOptions{Failed: programFailed(&s.Rec)})
	var conflict *team.MergeError
	if errors.As(err, &conflict) && res != nil && res.State.Ended() { // it has come to its end, and all that conflicts is kept
		s.Tell(fmt.Sprintf("session %s: %v", s.Rec.ID, conflict))
		err = nil
	}
	if r.Err = err; err == nil {
		r.Action = endWord(res.Workspace.Preserved)
	}
	return r
}

// recoverPrograms ends what is left of programs in an open session whose
// supervisors were killed: each left its socket. It returns nil where there is none.
func recoverPrograms(h *site.Host, l state.Listed) *Recovered {
	s := attach.At(h.At(l))
	alone, err := s.Own()
	if err != nil { // somebody came to work there meanwhile
		return nil
	}
	defer s.Close()
	sockets, err := filepath.Glob(filepath.Join(text.QuotePattern(s.Folder), "sock-*"))
	if err == nil && len(sockets) == 0 {
		return nil
	}
	err = errors.Join(err, alone.EndLeftovers())
	if err != nil {
		return &Recovered{l.ID, "failed", err}
	}
	for _, path := range sockets {
		err = errors.Join(err, os.Remove(path))
	}
	return &Recovered{l.ID, "programs ended", err}
}

// programFailed reports whether a dead session's program failed: one that died with
// it did.
func programFailed(r *state.Record) bool { return r.ExitCode == nil || *r.ExitCode != 0 }

func endWord(preserved bool) string {
	if preserved {
		return "preserved"
	}
	return "ended"
}

// clearDone deletes the working folders of a session whose process was killed
// after it had ended it.
func clearDone(h *site.Host, l state.Listed) error {
	s := attach.At(h.At(l))
	alone, err := s.Own()
	if err != nil {
		if errors.Is(err, superqode.ErrLocked) {
			return nil // that process is still at it
		}
		return err
	}
	return errors.Join(alone.Clear(), s.Close())
}

// recoverDead brings back what a dead git_snapshot session left in the origin:
// nothing else may begin, or be looked at, before that.
func (m *Manager) recoverDead(l state.Listed) error {
	r := m.recoverOne(context.Background(), l)
	if r.Err != nil {
		return superqode.WithHint(fmt.Errorf("session %s died in the middle of its work and could not be recovered: %w", l.ID, r.Err), "superqode workspace recover --session %s", l.ID)
	}
	became := "the origin was brought back"
	if l.NoRevert || r.Action == endWord(true) {
		became = "what it changed in the origin was left, as asked for"
	}
	m.Tell(fmt.Sprintf("session %s had died in the middle of its work; %s (%s)", l.ID, became, r.Action))
	return nil
}

// RecoverInPlace brings back what a dead git_snapshot session left in the origin
// around dir. Call it before anything there is believed: the program of that
// session could have written it. It returns the session that works there, if
// one does. The error is of one that could not be brought back.
func (m *Manager) RecoverInPlace(dir string) (*state.Listed, error) {
	_, l, ok, err := m.Pointed(dir)
	if err != nil {
		return nil, err
	}
	if !ok || l == nil || !mode.Of(l.Mode).Exclusive() {
		return nil, nil
	}
	if l.Dead {
		return nil, m.recoverDead(*l)
	}
	return l, nil
}
