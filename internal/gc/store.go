package gc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// lostRefs deletes the refs of sessions that have no folder any more, when the
// last of them is old enough. Until then their salvages can be restored.
func (c *cleaner) lostRefs(ctx context.Context, p state.Project) error {
	store, err := c.ExistingStore(ctx, p)
	if err != nil || store == nil {
		return err
	}
	refs, err := store.ListRefs(ctx, "refs/superqode/")
	if err != nil {
		c.Tell(fmt.Sprintf("the store %s cannot be asked for its refs: %v", store.Dir(), err))
		return nil
	}
	last := map[superqode.SessionID]time.Time{}
	for _, ref := range refs {
		name, _, _ := strings.Cut(strings.TrimPrefix(ref.Name, "refs/superqode/"), "/")
		id, err := superqode.ParseSessionID(name)
		if err != nil || atomicfile.Exists(p.SessionPath(name)) || atomicfile.Exists(p.WorkspacePath(name)) {
			continue
		}
		if at := ref.Committed; at.After(last[id]) {
			last[id] = at
		}
	}
	ids := make([]superqode.SessionID, 0, len(last))
	for id := range last {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b superqode.SessionID) int { return strings.Compare(a.String(), b.String()) })
	for _, id := range ids {
		c.lostRef(ctx, store, id, c.now.Sub(last[id]))
	}
	return nil
}

func (c *cleaner) lostRef(ctx context.Context, store *store.Store, id superqode.SessionID, idle time.Duration) {
	name := id.String()
	if slices.ContainsFunc(c.res.Removed, func(r Removal) bool { return r.ID == name }) {
		return // the workspace went just now, and its salvage is what stays
	}
	state := fmt.Sprintf("only its refs are left, the last made %s ago", text.Age(idle))
	switch {
	case idle < c.opt.OlderThan:
		c.spare(name, state)
		return
	case c.opt.DryRun:
	default:
		if err := store.DeleteRefs(context.WithoutCancel(ctx), id); err != nil {
			c.failed(name, "its refs cannot be deleted", err)
			return
		}
		failpoint.Hit("cleanup.lost-refs")
	}
	c.removed(name, state, "")
}

// pack lets go of what no session needs any more. That it cannot be done is no
// failure of a cleanup: nothing is lost, only room.
func (c *cleaner) pack(ctx context.Context, p state.Project) {
	st, err := c.ExistingStore(ctx, p)
	if err == nil && st != nil {
		err = rewriteSalvageRefs(ctx, p, st)
	}
	if err != nil || st == nil {
		c.warnPack(err)
		return
	}
	res, err := st.Pack(ctx, store.PackOptions{Now: c.now, Idle: func() (bool, error) { return idle(p) }})
	c.warnPack(err)
	if res.Done {
		c.Log.Info().Int("dropped", res.Dropped).Int64("freed", res.Freed).Msg("store packed")
	}
}

func (c *cleaner) warnPack(err error) {
	if err != nil {
		c.Tell(fmt.Sprintf("the store was left as it is: %v", err))
	}
}

// idle reports whether no session of the project may rely on contents of the
// store to which no ref leads: those of an open session's base, say.
func idle(p state.Project) (bool, error) {
	names, err := p.SessionNames()
	if err != nil {
		return false, err
	}
	for _, id := range names {
		l, err := state.Load(p.SessionPath(id))
		if errors.Is(err, state.ErrGone) {
			return false, nil // it may be being made
		}
		if err != nil || !l.State.Ended() || l.State == superqode.StatePreserved && (mode.Of(l.Mode).InPlace || !l.HasFinal) {
			return false, nil //nolint:nilerr // a session that cannot be read may be open
		}
		if held, err := lockfile.IsHeld(state.LockPath(l.Dir)); err != nil || held {
			return false, err
		}
	}
	return true, nil
}

// rewriteSalvageRefs makes sure that each salvage that has a record has its ref,
// which a session's program may have deleted.
func rewriteSalvageRefs(ctx context.Context, p state.Project, store *store.Store) error {
	names, err := p.SessionNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		id, err := superqode.ParseSessionID(name)
		if err != nil {
			continue
		}
		list, err := salvage.Read(p.SessionPath(name), id)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		refs, err := store.Refs(id)
		if err != nil {
			return err
		}
		for _, sv := range list {
			if refs[strings.TrimPrefix(sv.Ref, "refs/superqode/"+name+"/")] != "" {
				continue
			}
			if err := store.WriteRef(ctx, sv.Ref, sv.Commit); err != nil && !errors.Is(err, superqode.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}

// trash empties the project's trash and counts what was in it. What another
// process is sweeping already is that one's.
func (c *cleaner) trash(ctx context.Context, p state.Project) (err error) {
	if !c.opt.DryRun {
		unlock, err := lockfile.TryLock(filepath.Join(p.Dir, "trash.lock"))
		if errors.Is(err, lockfile.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	names, err := state.Names(p.TrashPath())
	if err != nil || len(names) == 0 {
		return err
	}
	held, _, err := snapshot.Scan(ctx, p.TrashPath(), snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly})
	if err != nil {
		return err
	}
	_, bytes := held.Count()
	if !c.opt.DryRun {
		failpoint.Hit("cleanup.sweep")
		if _, err := trash.Sweep(ctx, p.TrashPath(), 0); err != nil {
			return err
		}
	}
	c.res.Swept += bytes
	return nil
}
