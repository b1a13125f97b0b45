package salvage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Found is a salvage and its location.
type Found struct {
	Record
	Project state.Project
	parent  string // the commit that holds the list; "" when only the session's folder is known
}

// In returns the salvages of a project that the sessions' folders or the
// store's refs know.
func In(p state.Project, refs []store.Ref) ([]Found, error) {
	found := map[string]Found{}
	names, err := p.SessionNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, err := superqode.ParseSessionID(name)
		if err != nil {
			continue
		}
		list, err := Read(p.SessionPath(name), id)
		if err != nil {
			return nil, err
		}
		for _, sv := range list {
			found[sv.ID] = Found{Record: sv, Project: p}
		}
	}
	for _, ref := range refs {
		sv, ok := ofRef(ref)
		if !ok {
			continue
		}
		f, known := found[sv.ID]
		if !known {
			f = Found{Record: sv, Project: p}
		}
		f.parent = ref.Parent
		found[sv.ID] = f
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Found) int { return strings.Compare(b.ID, a.ID) }), nil
}

// ofRef reads the record from a salvage's commit. A commit without a parent
// belongs to a salvage that was interrupted before anything was overwritten.
func ofRef(ref store.Ref) (sv Record, ok bool) {
	session, n, ok := splitRef(ref.Name)
	if !ok || ref.Parent == "" {
		return sv, false
	}
	_, record, _ := strings.Cut(ref.Message, "\n\n")
	sv, err := Parse([]byte(record), session, n)
	if err != nil {
		return sv, false
	}
	sv.Commit = ref.Commit
	return sv, true
}

// splitRef splits refs/superqode/<session>/salvage/<n>.
func splitRef(ref string) (id superqode.SessionID, n int, ok bool) {
	rest, ok := strings.CutPrefix(ref, "refs/superqode/")
	if !ok {
		return id, 0, false
	}
	session, number, ok := strings.Cut(rest, "/salvage/")
	if !ok {
		return id, 0, false
	}
	id, err := superqode.ParseSessionID(session)
	if err != nil {
		return id, 0, false
	}
	n, ok = Number(number, "")
	return id, n, ok
}

// Pick returns the one that a person named; see session.Manager.FindSalvage.
func Pick(list []Found, name string) (*Found, error) {
	session, number, numbered := strings.Cut(name, "/")
	if id, n, ok := splitRef(name); ok {
		session, number, numbered = id.String(), strconv.Itoa(n), true
	}
	var hits []Found
	for _, f := range list {
		id := f.Session.String()
		if session == "" || numbered && number != strconv.Itoa(f.N) {
			continue
		}
		if strings.HasPrefix(id, session) || strings.HasSuffix(id, session) {
			hits = append(hits, f)
		}
	}
	switch len(hits) {
	case 0:
		return nil, superqode.ErrNotFound
	case 1:
		return &hits[0], nil
	}
	names := make([]string, 0, 5)
	for _, f := range hits[:min(len(hits), 5)] {
		names = append(names, f.ID)
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: it matches %d salvages (%s)", name, len(hits), strings.Join(names, ", ")), "superqode workspace restore %s", names[0])
}

// List loads the exact list of a salvage's entries: from the session's folder
// or, if that is gone or damaged, from the store.
func (f *Found) List(ctx context.Context, store *store.Store) (*snapshot.Snapshot, error) {
	dir := Dir(f.Project.SessionPath(f.Session.String()))
	sn, err := snapshot.Load(f.ListPath(dir))
	if err == nil || f.parent == "" {
		return sn, err
	}
	id, serr := store.Blob(ctx, f.parent, ListName)
	if serr != nil {
		return nil, errors.Join(err, serr)
	}
	return store.LoadSnapshot(ctx, id)
}

// MarshalJSON writes the salvage's record; its location is of no use elsewhere.
func (f Found) MarshalJSON() ([]byte, error) { return json.Marshal(f.Record) }

// Where is the folder that Restore writes into when none is named.
func (f *Found) Where() string {
	return filepath.Join(string(f.Origin), ".superqode", "salvage", fmt.Sprintf("%s-%d", f.Session, f.N))
}
