package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/home"
	"github.com/seed-2d964004/superqode/snapshot"
)

// FoundSalvage is a salvage and where it lies.
type FoundSalvage struct {
	Salvage
	p      home.Project
	parent string // the commit that holds the list; "" when only the session's folder is known
}

// Salvages returns the salvages of the origin around dir, or of every origin,
// newest first. Those whose session's folder is gone are found by their refs.
func (m *Manager) Salvages(ctx context.Context, dir string, all bool) ([]FoundSalvage, error) {
	projects, err := m.projects(ctx, dir, all)
	if err != nil {
		return nil, err
	}
	var list []FoundSalvage
	for _, p := range projects {
		found, err := m.projectSalvages(ctx, p)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	slices.SortStableFunc(list, func(a, b FoundSalvage) int { return b.At.Compare(a.At) })
	return list, nil
}

// projectSalvages looks into the sessions' folders and into the store. What only
// one of the two has is found too.
func (m *Manager) projectSalvages(ctx context.Context, p home.Project) ([]FoundSalvage, error) {
	found := map[string]FoundSalvage{}
	names, err := p.SessionNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, err := superqode.ParseSessionID(name)
		if err != nil {
			continue
		}
		list, err := readSalvages(p.SessionPath(name), id)
		if err != nil {
			return nil, err
		}
		for _, sv := range list {
			found[sv.ID] = FoundSalvage{Salvage: sv, p: p}
		}
	}
	refs, err := m.salvageRefs(ctx, p)
	if err != nil {
		m.cfg.Warn(fmt.Sprintf("the store %s can not be asked for salvages: %v", p.StorePath(), err))
	}
	for _, ref := range refs {
		sv, ok := salvageOfRef(ref)
		if !ok {
			continue
		}
		if known, ok := found[sv.ID]; ok {
			known.parent = ref.Parent
			found[sv.ID] = known
			continue
		}
		found[sv.ID] = FoundSalvage{Salvage: sv, p: p, parent: ref.Parent}
	}
	list := make([]FoundSalvage, 0, len(found))
	for _, f := range found {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b FoundSalvage) int { return strings.Compare(b.ID, a.ID) })
	return list, nil
}

// salvageRefs asks a project's store, if there is one.
func (m *Manager) salvageRefs(ctx context.Context, p home.Project) ([]snapshot.Ref, error) {
	store, err := m.existingStore(ctx, p)
	if err != nil || store == nil {
		return nil, err
	}
	return store.ListRefs(ctx, "refs/superqode/")
}

// existingStore opens a project's store as it is; it is nil where there is none.
func (m *Manager) existingStore(ctx context.Context, p home.Project) (*snapshot.Store, error) {
	g, err := m.git(ctx)
	if err != nil {
		return nil, err
	}
	store, err := snapshot.OpenExisting(g, p.StorePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return store, err
}

// salvageOfRef reads the record out of a salvage's commit. One without a parent
// was cut short before anything was overwritten.
func salvageOfRef(ref snapshot.Ref) (sv Salvage, ok bool) {
	session, n, ok := splitSalvageRef(ref.Name)
	if !ok || ref.Parent == "" {
		return sv, false
	}
	_, record, _ := strings.Cut(ref.Message, "\n\n")
	sv, err := parseSalvage([]byte(record), session, n)
	if err != nil {
		return sv, false
	}
	sv.Commit = ref.Commit
	return sv, true
}

// splitSalvageRef takes refs/superqode/<session>/salvage/<n> apart.
func splitSalvageRef(ref string) (id superqode.SessionID, n int, ok bool) {
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
	n, ok = salvageNumber(number, "")
	return id, n, ok
}

// FindSalvage returns the salvage that a person named: "<session>/<n>", with the
// session's id or any unique prefix or suffix of it; a session alone that has
// one salvage; or the salvage's ref. The salvages of the origin around dir come
// first, then those of every origin. The error wraps ErrNotFound or, when the
// name is ambiguous, ErrUsage.
func (m *Manager) FindSalvage(ctx context.Context, dir, name string) (*FoundSalvage, error) {
	for _, all := range []bool{false, true} {
		list, err := m.Salvages(ctx, dir, all)
		if err != nil {
			if !all {
				continue // not in a repository, or git is broken there: the name may still say which
			}
			return nil, err
		}
		if sv, err := pickSalvage(list, name); !errors.Is(err, superqode.ErrNotFound) {
			return sv, err
		}
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no salvage matches %q", name), "superqode workspace restore --list --all")
}

func pickSalvage(list []FoundSalvage, name string) (*FoundSalvage, error) {
	session, number, numbered := strings.Cut(name, "/")
	if id, n, ok := splitSalvageRef(name); ok {
		session, number, numbered = id.String(), strconv.Itoa(n), true
	}
	var hits []FoundSalvage
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

// list loads the exact list of a salvage's entries: from the session's folder
// or, when that is gone or damaged, out of the store.
func (f *FoundSalvage) list(ctx context.Context, store *snapshot.Store) (*snapshot.Snapshot, error) {
	dir := salvageDir(f.p.SessionPath(f.Session.String()))
	sn, err := snapshot.Load(f.listPath(dir))
	if err == nil || f.parent == "" {
		return sn, err
	}
	id, serr := store.Blob(ctx, f.parent, salvageList)
	if serr != nil {
		return nil, errors.Join(err, serr)
	}
	return store.LoadSnapshot(ctx, id)
}

// MarshalJSON writes the salvage's record; where it lies is of no use elsewhere.
func (f FoundSalvage) MarshalJSON() ([]byte, error) { return json.Marshal(f.Salvage) }

// where is the folder that Restore writes into when none is named.
func (f *FoundSalvage) where() string {
	return filepath.Join(string(f.Origin), ".superqode", "salvage", fmt.Sprintf("%s-%d", f.Session, f.N))
}
