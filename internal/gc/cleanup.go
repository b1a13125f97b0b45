package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// CleanupOptions says what Cleanup may take.
type CleanupOptions struct {
	Dir       string        // any folder inside the origin
	All       bool          // every origin
	OlderThan time.Duration // what was used since then is spared
	Force     bool          // pinned sessions too, and those whose changes are kept nowhere else
	DryRun    bool          // only tell
}

// CleanedUp tells what Cleanup did, or would do.
type CleanedUp struct {
	Removed []Removal
	Spared  []Sparing
	Swept   int64 // bytes of trash
}

// Removal is a session, or what was left of one, that was removed.
type Removal struct {
	ID      string
	Why     string
	Salvage string // id of the salvage made before, "" for none
}

// Sparing is a session that was left alone, and why. Err is set when it should
// have been removed and could not be.
type Sparing struct {
	ID  string
	Why string
	Err error
}

// Cleanup removes sessions that have ended, or that nobody used for a time, and
// what crashes left of others, and empties the trash. It never touches a session
// that lives, the files of an origin, or, without Force, a session that is
// pinned or has changes that are kept nowhere else; and it salvages a workspace
// before it removes it.
//
// A session's workspace goes first and its record, refs and salvages one age
// later, so that Restore can bring back meanwhile whatever a cleanup removed.
func (g *Collector) Cleanup(ctx context.Context, opt CleanupOptions) (*CleanedUp, error) {
	projects, err := registry.Projects(ctx, g.Host, opt.Dir, opt.All)
	if err != nil {
		return nil, err
	}
	c := &cleaner{Collector: g, opt: opt, now: g.Now(), res: &CleanedUp{}}
	slices.SortFunc(projects, func(a, b state.Project) int { return cmp.Compare(a.Dir, b.Dir) })
	for _, p := range projects {
		if ctx.Err() != nil {
			return c.res, errors.Join(err, context.Cause(ctx))
		}
		if !p.Exists() {
			continue
		}
		if perr := c.project(ctx, p); perr != nil {
			err = errors.Join(err, fmt.Errorf("clean up %s: %w", p.Dir, perr))
		}
	}
	return c.res, err
}

// Stale removes, of the sessions of an origin that have ended, those that Cleanup would
// remove and that keep nothing which is not elsewhere, until the time is over: what one
// of them needs is finished. It returns how many went. What it had to spare, which may
// take long to find out, is not looked at again for an hour.
func (g *Collector) Stale(ctx context.Context, opt CleanupOptions, within time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p, err := registry.Locate(ctx, g.Host, opt.Dir)
	if err != nil || !p.Exists() {
		return 0, err
	}
	unlock, err := p.LockCleanup(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock() //nolint:errcheck // a lock that cannot be given back ends with the process
	names, err := p.SessionNames()
	slices.Sort(names)
	c := &cleaner{Collector: g, opt: opt, now: g.Now(), res: &CleanedUp{}}
	spared := filepath.Join(p.Dir, "spared")
	st, serr := os.Stat(spared)
	soon := serr == nil && c.now.Sub(st.ModTime()) < time.Hour
	for _, id := range names {
		if ctx.Err() != nil {
			break
		}
		dir := p.SessionPath(id)
		if st, serr := os.Lstat(state.RecordPath(dir)); serr == nil && c.now.Sub(st.ModTime()) < opt.OlderThan {
			continue // its record was written later than that
		}
		l, lerr := state.Load(dir)
		if lerr != nil || !l.State.Ended() || c.now.Sub(lastUsed(l.Record)) < opt.OlderThan || holds(l) {
			continue
		}
		if preserved := l.State == superqode.StatePreserved; preserved && (soon || mode.Of(l.Mode).InPlace) {
			continue
		} else if preserved {
			err = errors.Join(err, atomicfile.Replace(spared, nil, 0o600))
		}
		c.session(ctx, id, l, nil)
	}
	if len(c.res.Removed) > 0 {
		err = errors.Join(err, c.leases(context.WithoutCancel(ctx), p))
	}
	return len(c.res.Removed), err
}

// holds reports whether a session that is done keeps what is nowhere else. That goes only
// when somebody asks for it.
func holds(l state.Listed) bool {
	if l.State != superqode.StateDone {
		return false // Cleanup saves it first
	}
	salvages, err := salvage.Read(l.Dir, l.ID)
	return err != nil || len(salvages) > 0 || len(l.Beside) > 0 || atomicfile.Exists(filepath.Join(l.Dir, "large"))
}

type cleaner struct {
	*Collector
	opt CleanupOptions
	now time.Time
	res *CleanedUp
}

func (c *cleaner) removed(id, why, salvage string) {
	c.res.Removed = append(c.res.Removed, Removal{id, why, salvage})
}

func (c *cleaner) spare(id, why string) {
	c.res.Spared = append(c.res.Spared, Sparing{ID: id, Why: why})
}

// failed names a session that could not be removed; one that somebody has taken
// meanwhile is spared like any other that is in use.
func (c *cleaner) failed(id, what string, err error) {
	if errors.Is(err, superqode.ErrLocked) {
		c.spare(id, err.Error())
		return
	}
	err = fmt.Errorf("%s: %w", what, err)
	c.res.Spared = append(c.res.Spared, Sparing{id, err.Error(), err})
}

// project cleans up one project. Of several cleanups at once each waits for the
// one before it.
func (c *cleaner) project(ctx context.Context, p state.Project) (err error) {
	if !c.opt.DryRun {
		unlock, err := p.LockCleanup(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		if err := RemoveUnborn(p); err != nil {
			return err
		}
		if apply.AnyPending(p) {
			apply.Notice(c.Host, p)
		}
	}
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	// What gives room comes first: a salvage needs some, and the disk may be full.
	err = c.trash(ctx, p)
	slices.Sort(names)
	for _, done := range []bool{true, false} {
		for _, id := range names {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if l, lerr := state.Load(p.SessionPath(id)); !errors.Is(lerr, state.ErrGone) && done == (lerr == nil && l.State == superqode.StateDone) {
				c.session(ctx, id, l, lerr)
				failpoint.Hit("cleanup.session")
			}
		}
	}
	err = errors.Join(err, c.orphans(ctx, p))
	err = errors.Join(err, c.lostRefs(ctx, p))
	if c.opt.DryRun {
		return err
	}
	c.pack(ctx, p)
	return errors.Join(err, c.leases(ctx, p), mode.SweepStates(ctx, p, c.opt.Force), c.trash(ctx, p))
}

// leases forgets the names of workspaces that nobody uses. By them orphans are known that
// git still has among its worktrees.
func (c *cleaner) leases(ctx context.Context, p state.Project) error {
	o, err := originOf(p)
	if err != nil {
		return nil // told where orphans are looked for
	}
	return p.DropLeases(ctx, func(id string) bool {
		return o.Repo != nil && atomicfile.Exists(filepath.Join(o.Repo.CommonDir, "worktrees", id))
	})
}

// session decides about one session and does it; err is what its record said. A
// failure of one hides nothing from the others.
func (c *cleaner) session(ctx context.Context, id string, l state.Listed, err error) {
	switch {
	case err != nil:
		c.spare(id, fmt.Sprintf("its files cannot be read (%v): %s", err, superqode.Hint(err)))
		return
	case l.Alive:
		c.spare(id, "in use by another process")
		return
	case apply.Pending(l.Dir):
		c.spare(id, "its apply is under way, or was cut short: superqode workspace recover --session "+id)
		return
	case l.Pinned && !c.opt.Force:
		c.spare(id, "pinned")
		return
	case state.IsChild(&l):
		c.spare(id, "it belongs to session "+l.Parent.String())
		return
	case l.Dead:
		c.recover(ctx, l)
		return
	}
	idle := c.now.Sub(lastUsed(l.Record))
	state := fmt.Sprintf("%s, last used %s ago", l.State, text.Age(idle))
	switch {
	case idle < c.opt.OlderThan:
		c.spare(id, state)
	case l.State == superqode.StateDone:
		c.forget(ctx, l, state)
	case mode.Of(l.Mode).InPlace && l.State == superqode.StateActive:
		c.spare(id, state+"; it works in the origin itself: superqode workspace end --session "+id)
	case mode.Of(l.Mode).InPlace:
		c.letGo(ctx, l, state)
	default:
		c.remove(ctx, l, state)
	}
}

// lastUsed is when somebody last did something with the session.
func lastUsed(r state.Record) time.Time {
	if r.EndedAt.After(r.UpdatedAt) {
		return r.EndedAt
	}
	return r.UpdatedAt
}

// recover takes a dead session the way down that every recovery takes. What it
// leaves has ended just now, and is a later cleanup's.
func (c *cleaner) recover(ctx context.Context, l state.Listed) {
	id, preserved := l.ID.String(), false
	if c.opt.DryRun {
		preserved = c.Keeps(l)
	} else {
		var err error
		if _, preserved, err = c.Recover(context.WithoutCancel(ctx), l); err != nil {
			c.failed(id, "died, and could not be recovered", err)
			return
		}
	}
	if preserved {
		c.spare(id, "died; recovered, and its workspace preserved")
		return
	}
	c.removed(id, "died; recovered", "")
}

// forget deletes the record and the refs of a session that is done. Artifacts in
// the origin stay.
func (c *cleaner) forget(ctx context.Context, l state.Listed, state string) {
	id := l.ID.String()
	salvages, err := salvage.Read(l.Dir, l.ID)
	if err != nil {
		c.failed(id, "its salvages cannot be read", err)
		return
	}
	for _, sv := range salvages {
		if age := c.now.Sub(sv.At); age < c.opt.OlderThan {
			c.spare(id, fmt.Sprintf("%s; it keeps salvage %s, made %s ago", state, sv.ID, text.Age(age)))
			return
		}
	}
	if c.opt.DryRun {
		c.removed(id, state, "")
		return
	}
	if err := forget(ctx, c.Host, l); err != nil {
		c.failed(id, "its record cannot be removed", err)
		return
	}
	c.removed(id, state, "")
}

// forget takes a session's folder away and then its refs: refs without a folder
// are cleared away later, a folder without its refs would promise what is gone.
func forget(ctx context.Context, h *site.Host, l state.Listed) (err error) {
	s := attach.At(h.At(l))
	if _, err := s.Own(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Rec.State != superqode.StateDone || s.Rec.Pinned != l.Pinned {
		return s.InUse()
	}
	if err := trash.Put(s.Folder, s.Project.TrashPath()); err != nil {
		return err
	}
	failpoint.Hit("cleanup.forgotten")
	store, err := h.ExistingStore(ctx, s.Project)
	if err != nil || store == nil {
		return err
	}
	if err := store.DeleteRefs(context.WithoutCancel(ctx), s.Rec.ID); err != nil {
		return err
	}
	failpoint.Hit("cleanup.refs")
	return nil
}

// take locks a session, unless somebody has used it since it was looked at.
func (c *cleaner) take(l state.Listed) (_ attach.Alone, ok bool) {
	s, err := attach.At(c.At(l)).Own()
	if err != nil {
		c.failed(l.ID.String(), "it cannot be locked", err)
		return s, false
	}
	if s.Rec.State != l.State || s.Rec.Pinned != l.Pinned || !s.Rec.UpdatedAt.Equal(l.UpdatedAt) {
		c.spare(l.ID.String(), "in use by another process")
		_ = s.Close() // ends with the process
		return s, false
	}
	return s, true
}

// remove takes an isolated session's workspace away.
func (c *cleaner) remove(ctx context.Context, l state.Listed, state string) {
	s, ok := c.take(l)
	if !ok {
		return
	}
	defer s.Close() //nolint:errcheck // a lock that cannot be given back ends with the process
	id := l.ID.String()
	unsaved, err := s.Unsaved(ctx)
	ctx = context.WithoutCancel(ctx) // once begun, this is not left half-way
	if err != nil {
		unsaved = "its changes cannot be known: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if unsaved != "" {
		state += "; " + unsaved
		if !c.opt.Force {
			c.spare(id, state)
			return
		}
	}
	if c.opt.DryRun {
		c.removed(id, state, "")
		return
	}
	s.MakeRoom(ctx)
	d, err := mode.SalvageWorkspace(ctx, s.Site, "workspace removed by cleanup")
	if err != nil {
		c.failed(id, "its workspace cannot be salvaged", err)
		return
	}
	failpoint.Hit("cleanup.salvaged")
	if err := c.Dispose(ctx, s, d, c.opt.Force); err != nil {
		c.failed(id, "it cannot be removed", err)
		return
	}
	failpoint.Hit("cleanup.disposed")
	c.removed(id, state, d.Salvage.Name())
}

// letGo takes away what a preserved in-place session keeps of the origin. The
// origin itself stays as it is. Where that is what it was, nothing more is
// needed of it; else what is kept goes with Force only, as a salvage.
func (c *cleaner) letGo(ctx context.Context, l state.Listed, state string) {
	s, ok := c.take(l)
	if !ok {
		return
	}
	defer s.Close() //nolint:errcheck // a lock that cannot be given back ends with the process
	id := l.ID.String()
	ctx = context.WithoutCancel(ctx) // once begun, this is not left half-way
	differs, err := mode.Differs(ctx, s.Site)
	if err != nil {
		differs = fmt.Sprintf("whether that is as it was cannot be known: %v", err)
	}
	if differs != "" && !c.opt.Force {
		c.spare(id, state+"; it keeps what the origin was ("+differs+"): superqode workspace revert --session "+id)
		return
	}
	if c.opt.DryRun {
		c.removed(id, state, "")
		return
	}
	s.MakeRoom(ctx)
	var d mode.Disposal
	if differs != "" {
		if d.Salvage, err = mode.SalvageAside(ctx, s.Site); err != nil {
			c.failed(id, "what it keeps of the origin cannot be salvaged", err)
			return
		}
	}
	if err := c.Dispose(ctx, s, d, c.opt.Force); err != nil {
		c.failed(id, "it cannot be removed", err)
		return
	}
	c.removed(id, state, d.Salvage.Name())
}

// RemoveUnborn removes the folders of a project's sessions whose maker was killed
// before it wrote their session.json.
func RemoveUnborn(p state.Project) error {
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	for _, id := range names {
		dir := p.SessionPath(id)
		if _, err := state.Load(dir); !errors.Is(err, state.ErrGone) {
			continue
		}
		unlock, err := lockfile.TryLock(state.LockPath(dir))
		if errors.Is(err, lockfile.ErrHeld) || errors.Is(err, os.ErrNotExist) {
			continue // it is being made right now, or gone
		}
		if err != nil {
			return err
		}
		var rerr error
		if _, err := state.Load(dir); errors.Is(err, state.ErrGone) {
			rerr = os.RemoveAll(dir)
		}
		if err := errors.Join(rerr, unlock()); err != nil {
			return err
		}
	}
	return nil
}
