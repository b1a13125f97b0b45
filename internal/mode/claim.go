package mode

import (
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// ClaimOrigin makes sure that no two sessions that would meet in the origin's
// files are open at once: a git_snapshot session is alone, and nothing is made
// of an origin in which one is at work. The caller holds the project lock.
func ClaimOrigin(p state.Project, mode superqode.Mode) error {
	return claim(p, Of(mode).Exclusive())
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
		l, err := state.Load(p.SessionPath(id))
		if err != nil || l.State.Ended() || !Of(l.Mode).InPlace {
			continue // broken ones are told of elsewhere; they can not be asked
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
