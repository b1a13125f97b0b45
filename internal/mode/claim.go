package mode

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// ClaimOrigin makes sure that no two sessions that would meet in the origin's
// files are open at once: a git_snapshot session is alone, and nothing is made
// of an origin in which one is at work. The caller holds the project lock.
//
// A name is one open session's.
func ClaimOrigin(p state.Project, mode superqode.Mode, name string) error {
	l, err := p.Named(name)
	if l != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--name %s: session %s has that name and is open", text.Printable(name), l.ID),
			"superqode workspace end --session %s # or: superqode workspace create --reuse --name %s", l.ID, text.QuotePOSIX(name))
	}
	return errors.Join(err, claim(p, Of(mode).Exclusive()))
}

// ClaimAlone makes sure that no session works in the origin itself: what is done
// next must not meet one. The caller holds the project lock.
func ClaimAlone(p state.Project) error { return claim(p, true) }

func claim(p state.Project, alone bool) error {
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if !state.MayBeOpen(dir) {
			continue
		}
		l, err := state.Load(dir)
		if errors.Is(err, state.ErrBroken) && atomicfile.Exists(filepath.Join(l.Dir, "aside")) {
			return fmt.Errorf("session %s keeps what this origin was: %w", id, err)
		}
		if err != nil || l.State.Ended() || !Of(l.Mode).InPlace {
			continue // broken ones are reported elsewhere and cannot be asked
		}
		exclusive := Of(l.Mode).Exclusive()
		if l.Dead && !exclusive || !alone && !exclusive {
			continue
		}
		return &HolderError{ID: l.ID, Mode: l.Mode}
	}
	return nil
}

// HolderError says that another session has the origin for itself. It wraps
// superqode.ErrLocked.
type HolderError struct {
	ID   superqode.SessionID
	Mode superqode.Mode
}

// Error names the session.
func (e *HolderError) Error() string {
	return fmt.Sprintf("session %s works in the origin itself (%s mode)", e.ID, e.Mode)
}

// Unwrap returns superqode.ErrLocked and what can be done.
func (e *HolderError) Unwrap() error {
	return superqode.WithHint(superqode.ErrLocked, "wait for it, or superqode workspace end --session %s", e.ID)
}
