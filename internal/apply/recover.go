package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Recovered says what became of an apply that was cut short.
type Recovered struct {
	ID     superqode.SessionID
	Action string // Finished, TakenBack or, with Err set, "failed"
	Err    error
}

// Notice finishes what an interrupted apply left in the origin, before
// anything else looks at it, and says so. One that is under way holds the
// project's lock and is left alone.
func Notice(h *site.Host, p state.Project) {
	unlock, err := lockfile.TryLock(p.LockPath())
	if err != nil {
		return // it is at work, or the next step will say why nothing can be locked
	}
	err = finishAll(context.Background(), h, p, func(r Recovered) {
		if r.Err == nil {
			h.Tell(fmt.Sprintf("an apply of session %s was interrupted; it was %s", r.ID, map[string]string{Finished: "finished", TakenBack: TakenBack}[r.Action]))
		}
	})
	if err = errors.Join(err, unlock()); err != nil {
		h.Tell(err.Error())
	}
}

// Recover finishes, or takes back, the applies of a project that were cut short.
func Recover(ctx context.Context, h *site.Host, p state.Project) (done []Recovered, err error) {
	if !AnyPending(p) {
		return nil, nil
	}
	unlock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	err = finishAll(ctx, h, p, func(r Recovered) { done = append(done, r) })
	if len(done) > 0 && done[len(done)-1].Err != nil {
		err = nil // told as that session's
	}
	return done, errors.Join(err, unlock())
}

// AnyPending reports whether some session's apply is under way or was cut short.
func AnyPending(p state.Project) bool {
	names, _ := p.SessionNames() // what cannot be listed cannot be recovered
	return slices.ContainsFunc(names, func(id string) bool { return Pending(p.SessionPath(id)) })
}

// finishAll finishes, or takes back, the applies of a project's sessions that
// were cut short, and tells of each. The caller holds the project's lock, so
// none of them is at work.
func finishAll(ctx context.Context, h *site.Host, p state.Project, tell func(Recovered)) error {
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if !Pending(dir) {
			continue
		}
		l, err := state.Load(dir)
		if errors.Is(err, state.ErrGone) {
			continue
		}
		r := Recovered{ID: l.ID, Action: "failed"}
		if err == nil {
			r.Action, err = endingOf(h.At(l)).Finish(ctx)
		}
		if err != nil {
			r.Action, r.Err = "failed", superqode.WithHint(fmt.Errorf("finish the interrupted apply of session %s: %w", id, err), "look at %s; without it nothing is finished", IntentPath(dir))
		}
		if r.Action != "" && tell != nil {
			tell(r)
		}
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}
