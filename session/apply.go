package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Apply brings the changes of the session that ref names into the work tree of
// its origin: all that were asked for or, with an error that wraps ErrConflict,
// none. Index, HEAD and refs are not touched. Of a session that has not ended
// the workspace is taken as it is now.
//
// The result is not nil as soon as it was decided what would happen.
func (m *Manager) Apply(ctx context.Context, dir, ref string, opt apply.Options) (_ *artifacts.Applied, _ state.Record, err error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, state.Record{}, err
	}
	m.noticeDead(m.session(l).Project)
	if l.State == superqode.StateActive && l.Alive {
		m.Tell(fmt.Sprintf("session %s is in use; what is in its workspace at this moment is taken", l.ID))
	}
	s, err := m.attach(l)
	if err == nil && l.State == superqode.StateDone {
		err = s.hold()
	}
	if err != nil {
		return nil, l.Record, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	res, err := s.apply(ctx, opt)
	return res, s.Rec, err
}

// hold keeps a cleanup away from a session that has ended.
func (s *Session) hold() error {
	unlock, err := lockfile.TryShare(state.LockPath(s.Folder))
	if errors.Is(err, lockfile.ErrHeld) {
		return s.inUse()
	}
	if err != nil {
		return err
	}
	s.unlock = unlock
	return s.Reload()
}

func (s *Session) apply(ctx context.Context, opt apply.Options) (*artifacts.Applied, error) {
	if mode.Of(s.Rec.Mode).InPlace && !s.Rec.State.Ended() {
		return nil, &mode.HolderError{ID: s.Rec.ID, Mode: s.Rec.Mode}
	}
	if err := s.checkTarget(); err != nil {
		return nil, err
	}
	ends := s.Ends
	if !opt.Agent.IsZero() {
		ends = func(ctx context.Context) (merge.Ends, error) { return s.AgentEnds(ctx, opt.Agent) }
	}
	e, err := ends(ctx)
	if err != nil {
		return nil, err
	}
	return s.applyEnds(ctx, e, opt)
}

// checkTarget refuses an origin that has no work tree: its files are git's own.
func (s *Session) checkTarget() error {
	if s.Rec.CommonDir != "" {
		return nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(string(s.Rec.Origin), name)); err != nil {
			return nil
		}
	}
	return superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to apply to", s.Rec.Origin)
}

// applyEnds applies what lies between two states. Nobody else does that, or works
// in the origin itself, at the same time.
func (s *Session) applyEnds(ctx context.Context, e merge.Ends, opt apply.Options) (res *artifacts.Applied, err error) {
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := mode.ClaimAlone(s.Project); err != nil {
		return nil, err
	}
	if err := s.m.finishApplies(ctx, s.Project, nil); err != nil {
		return nil, err
	}
	apply.Sweep(s.Folder)
	j, err := s.applyJob(ctx)
	if err != nil {
		return nil, err
	}
	opt.Refuse = func(ctx context.Context, list []merge.Change) ([]artifacts.ApplyConflict, error) {
		return s.RefuseUnclaimed(ctx, opt.Agent, list)
	}
	return j.Apply(ctx, e, opt)
}

// applyJob is the session as package apply knows it.
func (s *Session) applyJob(ctx context.Context) (*apply.Job, error) {
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	g, err := s.Git(ctx)
	if err != nil {
		return nil, err
	}
	j := s.applyEnding()
	j.Store, j.Git = s.Store, g
	return j, nil
}

// applyEnding is applyJob for finishing what was cut short: it needs neither git nor
// the store.
func (s *Session) applyEnding() *apply.Job {
	return &apply.Job{ID: s.Rec.ID, Agent: s.Rec.Agent, Dir: s.Folder, Origin: s.Rec.Origin, Now: s.Now, Salvage: s.Salvage, Warn: s.Tell}
}
