package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/revert"
	"github.com/seed-2d964004/superqode/worktree"
)

// Session is one open, attached or ended session. Methods are not safe for
// concurrent use, but several processes may be attached to one session.
type Session struct {
	m      *Manager
	p      state.Project
	o      *origin
	dir    string // the session's folder
	rec    state.Record
	unlock func() error
	store  *snapshot.Store
	seal   *seal           // while a program runs
	meter  *snapshot.Meter // of the workspace's making

	joinGuard func() error // while the session is opened: waits for the guard

	crew
	fitting
	watched map[string]time.Time // when paths were first seen to change, by who watched this value's runs

	salvages []string // ids of what this process salvaged
	baseKept bool     // an in-place session's base contents are in the store

	distrusted bool // the repository may hold what a program put there: git must not look at it, not even for objects

	base   *snapshot.Snapshot // the workspace as it was handed out; loaded when needed
	origin *snapshot.Snapshot // the origin as it was then
	state  *revert.RepoState  // its repository beside the work tree

	reportOnly bool // cleanup took the session's folder: only its report is known

	secrets []string // environments of the programs that this process ran here, for what is to be masked
	masks   *redact.Redactor
}

// Record returns the session's record as it stands.
func (s *Session) Record() state.Record { return s.rec }

// Dir returns the session's folder of state.
func (s *Session) Dir() string { return s.dir }

// Close releases what the session holds and ends nothing.
func (s *Session) Close() error {
	if s.unlock == nil {
		return nil
	}
	err := s.unlock()
	s.unlock = nil
	return err
}

// Open makes a session and its workspace. On an error nothing half-made stays;
// the error wraps ErrUsage for options that do not fit the origin and
// ErrNotFound for an unknown revision.
func (m *Manager) Open(ctx context.Context, opt OpenOptions) (*Session, error) {
	holder, err := m.RecoverInPlace(opt.Dir)
	if err != nil {
		return nil, err
	}
	if holder != nil {
		return nil, &HolderError{ID: holder.ID, Mode: holder.Mode}
	}
	o, err := m.resolveOrigin(ctx, opt.Dir)
	if err != nil {
		return nil, err
	}
	if err := m.checkHome(o); err != nil {
		return nil, err
	}
	plan, err := m.plan(ctx, o, opt)
	if err != nil {
		return nil, err
	}
	if err := m.checkInputs(ctx, o, opt.Setup); err != nil {
		return nil, err
	}
	p := m.project(o)
	if plan.guard, err = newGuardRecord(plan, p); err != nil {
		return nil, err
	}
	if err := p.Create(o.key(), m.now()); err != nil {
		return nil, err
	}
	m.noticeDead(p)
	if err := prepareArtifacts(o.Top); err != nil { // found out now rather than after an hour's work
		return nil, err
	}
	s, err := m.claimSession(ctx, o, p, plan)
	if err != nil {
		return nil, err
	}
	if err := s.checkKernel(plan.kernelOptions()); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	s.meter = &snapshot.Meter{}
	done := m.begin(openStep(plan.mode), s.meter)
	err = s.fillGuarded(ctx, plan)
	done()
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	if err := s.keepSuppressions(); err != nil {
		m.cfg.Warn(err.Error() + "; no finding is suppressed")
	}
	return s, nil
}

// claimSession makes a session's folder, after it made sure that no other
// session has the origin for itself.
func (m *Manager) claimSession(ctx context.Context, o *origin, p state.Project, pl plan) (s *Session, err error) {
	unlock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := claimOrigin(p, pl.mode); err != nil {
		return nil, err
	}
	return m.newSession(o, p, pl)
}

func prepareArtifacts(top string) error {
	store, err := artifacts.Open(top)
	if err != nil {
		return err
	}
	if err := store.Prepare(); err != nil {
		return superqode.WithHint(err, "superqode writes its results to %s/.superqode; make it writable", top)
	}
	return nil
}

// plan is a set of options that was checked against the origin.
type plan struct {
	OpenOptions
	mode   superqode.Mode
	commit string // what HEAD of the workspace will be; "" outside git
	from   string // FromWorking or a commit id
	format snapshot.Format
	guard  state.GuardRecord
	parent superqode.SessionID // see Record.Parent
}

// plan decides the mode and resolves the revision before anything is made.
func (m *Manager) plan(ctx context.Context, o *origin, opt OpenOptions) (plan, error) {
	pl := plan{OpenOptions: opt, mode: opt.Mode, from: opt.From}
	if pl.from == "" {
		pl.from = FromWorking
	}
	if pl.Keep == "" {
		pl.Keep = state.KeepFailure
	}
	var err error
	if pl.format, err = snapshot.ParseFormat(o.Format); err != nil {
		return pl, err
	}
	if pl.mode == "" || pl.mode == superqode.ModeAuto {
		pl.mode = autoMode(o, pl.Template)
	}
	switch pl.mode {
	case superqode.ModeWorktree:
	case superqode.ModeSnapshot, superqode.ModeDirectory:
		return pl, planCopy(pl, superqode.RealPrefix(m.cfg.Home))
	case superqode.ModeGitSnapshot, superqode.ModeShared:
		if err := planInPlace(o, pl); err != nil {
			return pl, err
		}
		if o.Repo != nil {
			pl.commit, err = o.Repo.Head(ctx)
		}
		return pl, err
	default:
		return pl, superqode.Errorf(superqode.ErrUsage, "unknown mode %s", pl.mode)
	}
	switch {
	case pl.Template != "":
		return pl, templateMode(pl)
	case o.Repo == nil:
		return pl, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is not a git repository, so it can have no worktree", o.Top), "superqode run --snapshot -- CMD")
	case o.Repo.Bare:
		return pl, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is a bare repository: it has no work tree to make a session of", o.Top), "git clone %s DIR && superqode -C DIR run -- CMD", o.Top)
	}
	head, err := o.Repo.Head(ctx)
	if err != nil {
		return pl, err
	}
	if head == "" {
		return pl, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s has no commit yet, and git makes worktrees of commits only", o.Top), "superqode run --snapshot -- CMD, or commit first")
	}
	pl.commit = head
	if pl.from != FromWorking {
		if pl.commit, err = o.Repo.Commit(ctx, pl.from); err != nil {
			return pl, superqode.WithHint(err, "git log --oneline --all")
		}
		pl.from = pl.commit
	}
	return pl, nil
}

// newSession makes the session's folder, takes its lock and writes its record.
func (m *Manager) newSession(o *origin, p state.Project, pl plan) (s *Session, err error) {
	s, err = m.claimFolder(o, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nothing else was made yet, and discard would wait for the project's lock, which our caller holds
			err = errors.Join(err, os.RemoveAll(s.dir), s.Close())
		}
	}()
	now, id := m.now(), s.rec.ID
	s.rec = state.Record{
		SchemaVersion: state.SchemaVersion, ID: id, Name: pl.Name, Mode: pl.mode, State: superqode.StateCreated, Owned: pl.Owned, Keep: pl.Keep,
		Agent: pl.Agent, Parent: pl.parent, Case: state.HostPath(pl.Case), Outputs: pl.Outputs, Template: state.HostPath(pl.Template), Origin: state.HostPath(o.Top), Prefix: state.HostPath(o.Prefix), Workspace: state.HostPath(p.WorkspacePath(id.String())),
		ObjectFormat: o.Format, From: pl.from, CreatedAt: now.UTC(), UpdatedAt: now.UTC(), ChangeCount: -1,
		Command: []string{}, Warnings: []string{}, Tampered: []string{}, NoRevert: pl.NoRevert, Reports: pl.Reports, NoRedact: pl.NoRedact, Trial: pl.Trial, LeftOut: []state.HostPath{},
	}
	s.rec.Guard, s.rec.Given, s.rec.Claims, s.rec.Defaults, s.rec.Watcher = pl.guard, pl.Setup.Given, pl.Claims, pl.Defaults, pl.Watcher
	if pl.mode.InPlace() {
		s.rec.Workspace = state.HostPath(o.Top)
	}
	s.rec.Base.Head = pl.commit
	if o.Repo != nil && !o.Repo.Bare { // a bare one is a directory like any other: all of it is in the snapshot
		s.rec.CommonDir, s.rec.GitDir = state.HostPath(o.Repo.CommonDir), state.HostPath(o.Repo.GitDir)
	}
	for _, d := range sessionFolders() {
		if err := os.Mkdir(filepath.Join(s.dir, d), 0o700); err != nil {
			return s, err
		}
	}
	failpoint.Hit("open.folders")
	return s, s.save()
}

// claimFolder makes and locks a folder for a session under a new id.
func (m *Manager) claimFolder(o *origin, p state.Project) (*Session, error) {
	for try := 0; ; try++ {
		id := superqode.NewSessionID(m.now())
		s := &Session{m: m, p: p, o: o, dir: p.SessionPath(id.String()), rec: state.Record{ID: id}, fitting: fitting{opening: true}}
		err := os.Mkdir(s.dir, 0o700)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, state.Unwritable(err, s.dir)
		}
		s.unlock, err = lockfile.TryLock(state.LockPath(s.dir))
		if errors.Is(err, lockfile.ErrHeld) && try < 3 {
			continue // a recovery took the empty folder for one that was left behind
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(s.dir))
		}
		return s, nil
	}
}

// sessionFolders lists the folders of a session below its own: bin, exec, hooks
// and log are the supervisor's, tmp and artifacts the program's.
func sessionFolders() []string { return []string{"bin", "exec", "hooks", "log", "tmp", "artifacts"} }

func (s *Session) save() error {
	s.rec.UpdatedAt = s.m.now().UTC()
	return state.WriteRecord(s.dir, &s.rec)
}

// fill makes the workspace and records what must be known later: the base, the
// origin, and the contents that exist nowhere else.
func (s *Session) fill(ctx context.Context, pl plan) error {
	var missing []snapshot.Entry
	var err error
	switch {
	case pl.mode == superqode.ModeWorktree:
		missing, err = s.fillWorktree(ctx, pl)
	case pl.mode.InPlace():
		err = s.fillInPlace(ctx, pl)
	default:
		missing, err = s.fillCopy(ctx, pl)
	}
	if err != nil {
		return err
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(e snapshot.Entry) bool { return e.IsLarge() })
	if len(missing) > 0 {
		if err := s.store.WriteBlobs(ctx, string(s.rec.Workspace), missing); err != nil {
			return fmt.Errorf("keep the base's contents: %w", err)
		}
	}
	failpoint.Hit("open.stored")
	if err := s.saveBase(ctx); err != nil {
		return err
	}
	if err := s.joinGuard(); err != nil {
		return err
	}
	if err := s.nameWorkspace(ctx); err != nil {
		return err
	}
	s.rec.State = superqode.StateActive
	if err := s.save(); err != nil {
		return err
	}
	failpoint.Hit("open.active")
	return nil
}

// fillWorktree makes the workspace of worktree mode. The repository's state is
// recorded beside it: both only read the origin, and what git worktree add makes
// there is no part of the state.
func (s *Session) fillWorktree(ctx context.Context, pl plan) ([]snapshot.Entry, error) {
	var repo *revert.RepoState
	var res *worktree.Result
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		repo, err = revert.Capture(s.o.Repo, filepath.Join(s.dir, "state"))
		return err
	})
	g.Go(func() (err error) {
		res, err = worktree.Create(gctx, worktree.Options{
			Repo: s.o.Repo, ID: s.rec.ID, Path: string(s.rec.Workspace), From: pl.from, Head: pl.commit, Include: pl.Include, Format: pl.format, Lock: s.p.Lock,
			Meter: s.meter,
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	s.state, s.base, s.origin = repo, res.Base, res.Origin
	s.rec.AdminDir = state.HostPath(res.AdminDir)
	s.warn(res.Warnings...)
	return res.Missing, nil
}

// saveBase writes base and origin beside the record. The base comes last: it
// vouches only for files that did not change within the last tick of the clock,
// so there is a moment to wait, and the other writes use it.
func (s *Session) saveBase(ctx context.Context) error {
	digest, err := s.base.Digest()
	if err != nil {
		return err
	}
	s.rec.Base.Digest = digest
	s.rec.Base.Files, s.rec.Base.Bytes = s.base.Count()
	if s.state != nil {
		if err := s.state.Save(filepath.Join(s.dir, "state.json")); err != nil {
			return err
		}
	}
	if s.origin != nil {
		knowContents(s.origin, s.base)
		if err := s.origin.Save(filepath.Join(s.dir, "origin.snap")); err != nil {
			return err
		}
	}
	if err := s.base.Settle(ctx); err != nil {
		return err
	}
	return s.base.Save(filepath.Join(s.dir, "base.snap"))
}
