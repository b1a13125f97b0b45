package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/home"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/merge"
)

// ApplyOptions says which of a session's changes are brought into the origin.
type ApplyOptions struct {
	Paths []string          // relative to the origin's root, taken literally; a folder covers what is below it; none: all
	Hunks []merge.HunkRange // only these hunks of the diff of Paths; none: all
	Agent superqode.AgentID // only what this agent changed; zero: all
	Check bool              // decide only
	Stay  string            // an absolute path: this folder is not removed when nothing is left in it, because the caller stands there
}

// ApplyError says that changes conflict with the origin, which was not touched.
// It wraps superqode.ErrConflict.
type ApplyError struct{ Conflicts []artifacts.ApplyConflict }

// Error counts the conflicts; each has a line of its own in Conflicts.
func (e *ApplyError) Error() string {
	return superqode.Plural(len(e.Conflicts), "conflict") + "; nothing was applied"
}

// Unwrap returns superqode.ErrConflict.
func (*ApplyError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths that conflict.
func (e *ApplyError) ErrorPaths() []string {
	paths := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		paths[i] = c.Path.String()
	}
	return paths
}

// Apply brings the changes of the session that ref names into the work tree of
// its origin: all that were asked for or, with an error that wraps ErrConflict,
// none. Index, HEAD and refs are not touched. Of a session that has not ended
// the workspace is taken as it is now.
//
// The result is not nil as soon as it was decided what would happen.
func (m *Manager) Apply(ctx context.Context, dir, ref string, opt ApplyOptions) (_ *artifacts.Applied, _ Record, err error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, Record{}, err
	}
	m.noticeDead(m.session(l).p)
	if l.State == superqode.StateActive && l.Alive {
		m.cfg.Warn(fmt.Sprintf("session %s is in use; what is in its workspace at this moment is taken", l.ID))
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
	return res, s.rec, err
}

// hold keeps a cleanup away from a session that has ended.
func (s *Session) hold() error {
	unlock, err := lockfile.TryShare(home.LockPath(s.dir))
	if errors.Is(err, lockfile.ErrHeld) {
		return s.inUse()
	}
	if err != nil {
		return err
	}
	s.unlock = unlock
	return s.reload()
}

func (s *Session) apply(ctx context.Context, opt ApplyOptions) (*artifacts.Applied, error) {
	if s.rec.Mode.InPlace() && !s.rec.State.Ended() {
		return nil, &HolderError{ID: s.rec.ID, Mode: s.rec.Mode}
	}
	if err := s.checkTarget(); err != nil {
		return nil, err
	}
	ends := s.ends
	if !opt.Agent.IsZero() {
		ends = func(ctx context.Context) (merge.Ends, error) { return s.agentEnds(ctx, opt.Agent) }
	}
	e, err := ends(ctx)
	if err != nil {
		return nil, err
	}
	return s.applyEnds(ctx, e, opt)
}

// checkTarget refuses an origin that has no work tree: its files are git's own.
func (s *Session) checkTarget() error {
	if s.rec.CommonDir != "" {
		return nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(string(s.rec.Origin), name)); err != nil {
			return nil
		}
	}
	return superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to apply to", s.rec.Origin)
}

// applyEnds applies what lies between two states. Nobody else does that, or works
// in the origin itself, at the same time.
func (s *Session) applyEnds(ctx context.Context, e merge.Ends, opt ApplyOptions) (res *artifacts.Applied, err error) {
	unlock, err := s.p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := claimOrigin(s.p, superqode.ModeGitSnapshot); err != nil {
		return nil, err
	}
	if err := s.m.finishApplies(ctx, s.p, nil); err != nil {
		return nil, err
	}
	s.sweepBenches()
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	b, err := s.openBench(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	list, err := s.wanted(ctx, &e, b, opt)
	if err != nil {
		return nil, err
	}
	refused, err := s.refuseUnclaimed(ctx, opt.Agent, list)
	if err != nil {
		return nil, err
	}
	view, err := merge.Look(ctx, string(s.rec.Origin), b.Format, list)
	if err == nil {
		err = view.Err()
	}
	if err != nil {
		return nil, err
	}
	steps, err := (&merge.Decider{Now: view.Now, Merge: b.Merge(ctx), Similar: b.Similar}).Decide(list)
	if err != nil {
		return nil, err
	}
	res = s.outcome(steps, e.Left)
	res.Checked, res.Conflicts = opt.Check, append(refused, res.Conflicts...)
	switch {
	case len(res.Conflicts) > 0:
		return res, s.conflictError(res.Conflicts)
	case opt.Check || len(res.Applied) == 0:
		return res, nil
	}
	return res, s.carryOut(ctx, view, steps, b, opt, res)
}

// wanted returns the changes that were asked for.
func (s *Session) wanted(ctx context.Context, e *merge.Ends, b *merge.Bench, opt ApplyOptions) ([]merge.Change, error) {
	list, err := e.Pairs(ctx, s.store, opt.Paths)
	if err != nil {
		return nil, err
	}
	if err := s.checkPaths(list, opt.Paths); err != nil {
		return nil, err
	}
	if len(opt.Hunks) > 0 {
		if list, err = b.OnlyHunks(ctx, e, opt.Paths, opt.Hunks); err != nil {
			return nil, err
		}
	}
	return e.WithoutOwn(list), nil
}

// outcome tells what the steps come to.
func (s *Session) outcome(steps []merge.Step, left []string) *artifacts.Applied {
	res := &artifacts.Applied{LeftOut: left}
	for i := range steps {
		switch st := &steps[i]; {
		case st.Conflict != nil:
			path, _ := superqode.ParseRelPath(st.Conflict.Path) // it came out of git's tree
			res.Conflicts = append(res.Conflicts, artifacts.ApplyConflict{Path: path, Kind: string(st.Conflict.Kind), Message: st.Conflict.Message})
		case st.Done():
			res.Already = append(res.Already, s.tell(st))
		default:
			res.Applied = append(res.Applied, s.tell(st))
		}
	}
	return res
}

// tell describes a step as the session's change.
func (s *Session) tell(st *merge.Step) artifacts.AppliedPath {
	p := artifacts.AppliedPath{Merged: st.Merged}
	p.Path, _ = superqode.ParseRelPath(st.Path())
	p.LinesAdded, p.LinesRemoved, p.Binary, p.Agent = st.Added, st.Removed, st.Binary, s.rec.Agent
	if st.Old != nil {
		p.OldMode = st.Old.Mode()
	}
	if st.New != nil {
		p.NewMode = st.New.Mode()
	}
	switch {
	case st.Old == nil:
		p.Type = superqode.ChangeCreated
	case st.New == nil:
		p.Type = superqode.ChangeDeleted
	case st.Renamed():
		p.Type = superqode.ChangeRenamed
		p.OldPath, _ = superqode.ParseRelPath(st.Old.Path)
	case st.Old.Kind != st.New.Kind:
		p.Type = superqode.ChangeKind
	case merge.SameData(st.Old, st.New):
		p.Type = superqode.ChangeMode
	default:
		p.Type = superqode.ChangeModified
	}
	return p
}

func (s *Session) conflictError(conflicts []artifacts.ApplyConflict) error {
	return superqode.WithHint(&ApplyError{conflicts}, "superqode workspace diff --session %s -- PATH shows what the session did there; apply others with superqode workspace apply --session %s PATH…", s.rec.ID, s.rec.ID)
}
