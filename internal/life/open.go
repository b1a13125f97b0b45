package life

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Session is one open, attached or ended session. Methods are not safe for
// concurrent use, but several processes may be attached to one session.
type Session struct {
	*attach.Attached
	m         *Manager
	joinGuard func() error // while the session is opened: waits for the guard
	made      attach.Alone // where this process made the session: nobody else knows of it
}

// Record returns the session's record as it stands.
func (s *Session) Record() state.Record { return s.Rec }

// Dir returns the session's folder of state.
func (s *Session) Dir() string { return s.Folder }

// Open makes a session and its workspace. On an error nothing half-made stays;
// the error wraps ErrUsage for options that do not fit the origin and
// ErrNotFound for an unknown revision.
func (m *Manager) Open(ctx context.Context, opt OpenOptions) (*Session, error) {
	holder, err := m.RecoverInPlace(opt.Dir)
	if err != nil {
		return nil, err
	}
	if holder != nil {
		return nil, &mode.HolderError{ID: holder.ID, Mode: holder.Mode}
	}
	o, err := m.Resolve(ctx, opt.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkHome(m.Host, o); err != nil {
		return nil, err
	}
	plan, err := m.plan(ctx, o, opt)
	if err != nil {
		return nil, err
	}
	if err := prepare.Check(ctx, o, plan.make.Mode, opt.Setup); err != nil {
		return nil, err
	}
	p := m.ProjectOf(o)
	if plan.guard, err = layers.NewRecord(layers.Options(plan.Guard), plan.make.Mode, plan.Enforce, p); err != nil {
		return nil, err
	}
	if err := p.Create(o.Key(), m.Now()); err != nil {
		return nil, err
	}
	m.NoticeDead(p)
	if err := gc.PrepareArtifacts(o.Top); err != nil { // found out now rather than after an hour's work
		return nil, err
	}
	s, err := m.claimSession(ctx, o, p, plan)
	if err != nil {
		return nil, err
	}
	if err := s.Guard().CheckKernel(ctx, plan.kernelOptions()); err != nil {
		return nil, errors.Join(err, s.made.Discard())
	}
	s.Meter = &treecopy.Meter{}
	done := m.Begin(mode.Of(plan.make.Mode).Making, s.Meter)
	err = s.fillGuarded(ctx, plan)
	done()
	if err != nil {
		return nil, errors.Join(err, s.made.Discard())
	}
	if err := s.Findings().KeepSuppressions(); err != nil {
		m.Tell(err.Error() + "; no finding is suppressed")
	}
	return s, nil
}

// claimSession makes a session's folder, after it made sure that no other
// session has the origin for itself.
func (m *Manager) claimSession(ctx context.Context, o *site.Origin, p state.Project, pl plan) (s *Session, err error) {
	unlock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := mode.ClaimOrigin(p, pl.make.Mode, pl.Name); err != nil {
		return nil, err
	}
	return m.newSession(ctx, o, p, pl)
}

// plan is a set of options that was checked against the origin.
type plan struct {
	OpenOptions
	make   mode.Options
	guard  state.GuardRecord
	parent superqode.SessionID // see Record.Parent
	folder string              // what an agent's workspace is called, if it can be
}

// plan decides the mode and resolves the revision before anything is made.
func (m *Manager) plan(ctx context.Context, o *site.Origin, opt OpenOptions) (pl plan, err error) {
	pl.OpenOptions = opt
	pl.Keep = cmp.Or(pl.Keep, superqode.KeepFailure)
	pl.make, err = mode.Check(ctx, m.Host, o, mode.Options{
		Mode: opt.Mode, Overlay: opt.Overlay, From: opt.From, Include: opt.Include, Exclude: opt.Exclude, MaxBytes: opt.MaxBytes, MaxTree: opt.MaxTree, Template: opt.Template,
		IgnoredBudget: opt.IgnoredBudget, LeaveOut: opt.LeaveOut,
	})
	return pl, err
}

// newSession makes the session's folder, takes its lock and writes its record.
func (m *Manager) newSession(ctx context.Context, o *site.Origin, p state.Project, pl plan) (s *Session, err error) {
	s, err = m.claimFolder(o, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nothing else was made yet, and discard would wait for the project's lock, which our caller holds
			err = errors.Join(err, os.RemoveAll(s.Folder), s.Close())
		}
	}()
	now, id, workspace := m.Now(), s.Rec.ID, o.Top
	if !mode.Of(pl.make.Mode).InPlace {
		if workspace, err = p.Lease(ctx, id, cmp.Or(pl.folder, pl.Name)); err != nil {
			return s, err
		}
	}
	s.Rec = state.Record{
		SchemaVersion: state.SchemaVersion, ID: id, Name: pl.Name, Mode: pl.make.Mode, State: superqode.StateCreated, Owned: pl.Owned, Keep: pl.Keep,
		Agent: pl.Agent, Runner: state.HostPath(pl.Runner), Parent: pl.parent, Case: state.HostPath(pl.Case), Outputs: pl.Outputs, OutputLimits: pl.OutputLimits, Template: state.HostPath(pl.Template), Origin: state.HostPath(o.Top), Prefix: state.HostPath(o.Prefix), Workspace: state.HostPath(workspace), Overlay: mode.Of(pl.make.Mode).Overlay(o), Tmp: m.TmpName(o),
		ObjectFormat: o.Format, From: pl.make.From, CreatedAt: now.UTC(), UpdatedAt: now.UTC(), ChangeCount: -1,
		Command: []string{}, Warnings: []string{}, Tampered: []string{}, NoRevert: pl.NoRevert, Reports: pl.Reports, NoRedact: pl.NoRedact, Trial: pl.Trial, LeftOut: []state.HostPath{},
	}
	s.Rec.Guard, s.Rec.Given, s.Rec.Claims, s.Rec.Defaults, s.Rec.Watcher, s.Rec.Base.Head = pl.guard, pl.Setup.Given, pl.Claims, pl.Defaults, pl.Watcher, pl.make.Commit
	if o.Repo != nil && !o.Repo.Bare { // a bare one is a directory like any other: all of it is in the snapshot
		s.Rec.CommonDir, s.Rec.GitDir = state.HostPath(o.Repo.CommonDir), state.HostPath(o.Repo.GitDir)
	}
	if err := state.MakeFolders(s.Folder); err != nil {
		return s, err
	}
	failpoint.Hit("open.folders")
	if err := s.Save(); err != nil || !mode.Of(pl.make.Mode).InPlace {
		return s, err
	}
	return s, atomicfile.SyncDir(s.Folder) // a pointer from the origin's path will lead here
}

// claimFolder makes and locks a folder for a session under a new id.
func (m *Manager) claimFolder(o *site.Origin, p state.Project) (*Session, error) {
	for try := 0; ; try++ {
		id := superqode.NewSessionID(m.Now())
		s := m.of(&site.Site{Host: m.Host, Project: p, Source: o, Folder: p.SessionPath(id.String()), Rec: state.Record{ID: id}})
		err := os.Mkdir(s.Folder, 0o700)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, state.Unwritable(err, s.Folder)
		}
		s.made, err = s.Claim()
		if errors.Is(err, lockfile.ErrHeld) && try < 3 {
			continue // a recovery took the empty folder for one that was left behind
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(s.Folder))
		}
		return s, nil
	}
}

// fill makes the workspace and records what must be known later: the base, the
// origin, and the contents that exist nowhere else.
func (s *Session) fill(ctx context.Context, pl plan) error {
	missing, err := mode.For(pl.make.Mode).Make(ctx, s.Site, pl.make)
	if err != nil {
		return err
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(e snapshot.Entry) bool { return e.IsLarge() })
	if len(missing) > 0 {
		if err := s.Store.WriteBlobs(ctx, s.WorkDir(), missing); err != nil {
			return fmt.Errorf("keep the base's contents: %w", err)
		}
	}
	failpoint.Hit("open.stored")
	if err := mode.SaveBase(ctx, s.Site); err != nil {
		return err
	}
	if mode.Of(pl.make.Mode).InPlace {
		if err := s.Reserve(); err != nil {
			return err
		}
	}
	if err := s.joinGuard(); err != nil {
		return err
	}
	if err := s.NameWorkspace(ctx); err != nil {
		return err
	}
	s.Rec.State = superqode.StateActive
	if err := s.Save(); err != nil {
		return err
	}
	failpoint.Hit("open.active")
	return atomicfile.SyncDir(s.Folder) // as long as it is not active, a recovery throws the workspace away
}

// fillGuarded makes the workspace and the guard at the same time; fill joins them
// before it records that the session is active.
func (s *Session) fillGuarded(ctx context.Context, pl plan) error {
	own := *s.Site // what it reads does not change; the record is filled in meanwhile
	done := make(chan error, 1)
	var found state.GuardRecord
	go func() {
		var err error
		found, err = layers.Of(&own).Open(ctx)
		done <- err
	}()
	s.joinGuard = sync.OnceValue(func() error {
		err := <-done
		s.Rec.Guard = found
		return err
	})
	if err := s.fill(ctx, pl); err != nil {
		_ = s.joinGuard() // the folder is about to be removed; the first error is the one to tell
		return err
	}
	return s.Guard().OpenNested(ctx)
}

// kernelOptions are the plan's, without a layer that would forbid what the user
// has allowed.
func (pl plan) kernelOptions() layers.KernelOptions {
	opt := pl.KernelOptions
	if pl.Guard.Off && !mode.Of(pl.make.Mode).Mounted {
		opt.Enforce = kernel.EnforceOff
	}
	return opt
}
