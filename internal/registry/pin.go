package registry

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Pin sets or clears the mark that keeps cleanup away from a session: from its
// workspace, its record and its salvages. A session that runs can be pinned, and
// one that has ended. Unlike Session.update it goes by the record as it lies
// there: another process may be ending the session.
func Pin(ctx context.Context, m *site.Host, dir, ref string, pinned bool) (id superqode.SessionID, err error) {
	l, err := Resolve(ctx, m, dir, ref)
	if err != nil {
		return id, err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(l.Dir, "record.lock"))
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	rec, err := state.ReadRecord(l.Dir)
	if err != nil {
		return id, err
	}
	rec.Pinned, rec.UpdatedAt = pinned, m.Now().UTC()
	return rec.ID, state.WriteRecord(l.Dir, rec)
}

// KeptSessions returns the sessions of an origin whose artifacts must stay: those
// that are open, preserved or pinned.
func KeptSessions(ctx context.Context, m *site.Host, dir string) (map[superqode.SessionID]bool, error) {
	list, broken, err := List(ctx, m, dir, false)
	if err != nil {
		return nil, err
	}
	kept := map[superqode.SessionID]bool{}
	for _, b := range broken { // nobody knows what they are
		if id, err := superqode.ParseSessionID(b.ID); err == nil {
			kept[id] = true
		}
	}
	for _, l := range list {
		if l.State != superqode.StateDone || l.Pinned {
			kept[l.ID] = true
		}
	}
	return kept, nil
}
