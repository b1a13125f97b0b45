package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/home"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/swap"
	"github.com/seed-2d964004/superqode/merge"
)

// What Recovered says of an apply that was interrupted.
const (
	applyFinished  = "applied"
	applyTakenBack = "taken back"
)

// noticeApply finishes what an interrupted apply left in the origin, before
// anything else looks at it, and says so. One that is under way holds the
// project's lock and is left alone.
func (m *Manager) noticeApply(p home.Project) {
	unlock, err := lockfile.TryLock(p.LockPath())
	if err != nil {
		return // it is at work, or the next step will say why nothing can be locked
	}
	err = m.finishApplies(context.Background(), p, func(r Recovered) {
		if r.Err == nil {
			m.cfg.Warn(fmt.Sprintf("an apply of session %s was interrupted; it was %s", r.ID, map[string]string{applyFinished: "finished", applyTakenBack: applyTakenBack}[r.Action]))
		}
	})
	if err = errors.Join(err, unlock()); err != nil {
		m.cfg.Warn(err.Error())
	}
}

// recoverApplies is the part of Recover that is about applies.
func (m *Manager) recoverApplies(ctx context.Context, p home.Project) (done []Recovered, err error) {
	if !hasIntents(p) {
		return nil, nil
	}
	unlock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	err = m.finishApplies(ctx, p, func(r Recovered) { done = append(done, r) })
	if len(done) > 0 && done[len(done)-1].Err != nil {
		err = nil // told as that session's
	}
	return done, errors.Join(err, unlock())
}

// hasIntents reports whether some session's apply is under way or was cut short.
func hasIntents(p home.Project) bool {
	names, _ := p.SessionNames() // what can not be listed can not be recovered
	return slices.ContainsFunc(names, func(id string) bool { return hasIntent(p.SessionPath(id)) })
}

func hasIntent(sessionDir string) bool {
	_, err := os.Lstat(intentPath(sessionDir))
	return err == nil
}

// finishApplies finishes, or takes back, the applies of a project's sessions that
// were cut short, and tells of each. The caller holds the project's lock, so
// none of them is at work.
func (m *Manager) finishApplies(ctx context.Context, p home.Project, tell func(Recovered)) error {
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if !hasIntent(dir) {
			continue
		}
		l, err := load(dir)
		if errors.Is(err, errGone) {
			continue
		}
		r := Recovered{ID: l.ID, Action: "failed"}
		if err == nil {
			r.Action, err = m.session(l).finishApply(ctx)
		}
		if err != nil {
			r.Action, r.Err = "failed", superqode.WithHint(fmt.Errorf("finish the interrupted apply of session %s: %w", id, err), "look at %s; without it nothing is finished", intentPath(dir))
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

// finishApply goes on where an apply was cut short: forward where everything was
// ready to be put in place and still can be, else back. It returns what it came
// to, "" for nothing.
func (s *Session) finishApply(ctx context.Context) (action string, err error) {
	in, err := readIntent(s.dir)
	if err != nil || in == nil {
		return "", err
	}
	d, err := swap.Open(string(in.Origin))
	if errors.Is(err, os.ErrNotExist) {
		return "", s.dropIntent() // whoever deleted the origin has finished it
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	defer s.sweepBenches()
	failpoint.Hit("apply.recovering")
	switch in.Plan.Phase {
	case swap.Staging:
		return applyTakenBack, errors.Join(d.Discard(in.Plan), s.dropIntent())
	case swap.Committing:
		if cerr := d.Commit(ctx, in.Plan); cerr != nil {
			s.m.cfg.Warn(fmt.Sprintf("the interrupted apply of session %s can not be finished and is taken back: %v", s.rec.ID, cerr))
			return applyTakenBack, s.undoIntent(ctx, d, in)
		}
		if err := s.saveIntent(in, swap.Cleaning); err != nil {
			return "", err
		}
		return applyFinished, s.finishedApply(ctx, d, in)
	case swap.Undoing:
		return applyTakenBack, s.undoIntent(ctx, d, in)
	}
	if in.Undone {
		return applyTakenBack, s.cleanIntent(ctx, d, in)
	}
	return applyFinished, s.finishedApply(ctx, d, in)
}

func (s *Session) finishedApply(ctx context.Context, d *swap.Dir, in *applyIntent) error {
	return errors.Join(s.cleanIntent(ctx, d, in), s.journal().Write("applied", nil))
}

// sweepBenches deletes the folders in which a killed apply put contents together.
func (s *Session) sweepBenches() {
	names, _ := home.Names(s.dir)
	for _, n := range names {
		if strings.HasPrefix(n, merge.Prefix) {
			_ = os.RemoveAll(s.dir + "/" + n) // nothing depends on them
		}
	}
}
