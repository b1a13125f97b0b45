package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Listed is one session as `workspace list` shows it.
type Listed struct {
	Record
	Dir   string // the session's folder
	Alive bool   // some process holds its lock
	Dead  bool   // its process died without ending it
}

// Broken is a session whose own files can not be read; the others still work.
type Broken struct {
	ID  string
	Dir string
	Err error
}

// List returns the sessions of the origin around dir, or of every origin,
// newest first. It reads superqode's own records and never asks git for its
// worktrees, whose listing grows with their number.
func (m *Manager) List(ctx context.Context, dir string, all bool) ([]Listed, []Broken, error) {
	projects, err := m.projects(ctx, dir, all)
	if err != nil {
		return nil, nil, err
	}
	var dirs []string
	for _, p := range projects {
		ids, err := p.SessionNames()
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			dirs = append(dirs, p.SessionPath(id))
		}
	}
	sessions, broken := loadAll(dirs)
	sessions = withoutChildren(sessions)
	slices.SortStableFunc(sessions, func(a, b Listed) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return sessions, broken, nil
}

// loadAll reads many records with a few goroutines: 500 of them must not be
// noticed by a person.
func loadAll(dirs []string) ([]Listed, []Broken) {
	type result struct {
		l   Listed
		err error
	}
	results := make([]result, len(dirs))
	const workers = 4
	var wg sync.WaitGroup
	for w := range min(workers, len(dirs)) {
		wg.Go(func() {
			for i := w; i < len(dirs); i += workers {
				results[i].l, results[i].err = load(dirs[i])
			}
		})
	}
	wg.Wait()
	var sessions []Listed
	var broken []Broken
	for i, r := range results {
		switch {
		case r.err == nil:
			sessions = append(sessions, r.l)
		case errors.Is(r.err, errGone):
		default:
			broken = append(broken, Broken{filepath.Base(dirs[i]), dirs[i], r.err})
		}
	}
	return sessions, broken
}

// errGone means that a session folder vanished, or is still being made, while
// it was looked at.
var errGone = errors.New("session is gone")

func load(dir string) (Listed, error) {
	l := Listed{Dir: dir}
	r, err := readRecord(dir)
	if err != nil {
		if _, serr := os.Lstat(dir); serr != nil {
			return l, errGone
		}
		if errors.Is(err, os.ErrNotExist) && unborn(dir) {
			return l, errGone
		}
		return l, err
	}
	l.Record = *r
	if l.State.Ended() {
		return l, nil
	}
	if l.Alive, err = lockfile.IsHeld(state.LockPath(dir)); err != nil {
		return l, err
	}
	l.Dead = !l.Alive && (l.Owned || l.State != superqode.StateActive)
	return l, nil
}

// unborn reports whether a session folder without session.json is one that is
// being made, or whose maker was killed before it made anything else: there is
// no workspace, and Recover removes it.
func unborn(dir string) bool {
	p := state.Project{Dir: filepath.Dir(filepath.Dir(dir))}
	_, err := os.Lstat(p.WorkspacePath(filepath.Base(dir)))
	return errors.Is(err, os.ErrNotExist)
}

func (m *Manager) projects(ctx context.Context, dir string, all bool) ([]state.Project, error) {
	if !all {
		p, err := m.locate(ctx, dir)
		return []state.Project{p}, err
	}
	names, err := state.Names(m.workingPath())
	if err != nil {
		return nil, err
	}
	var projects []state.Project
	for _, n := range names {
		projects = append(projects, state.Project{Dir: filepath.Join(m.workingPath(), n)})
	}
	return projects, nil
}

// find resolves what a person typed: a whole id, a unique prefix or suffix of
// one, a session's name, or nothing for the only session that has not ended.
// Sessions of the origin around dir come first, then those of every origin.
func (m *Manager) find(ctx context.Context, dir, ref string) (Listed, error) {
	scopes := []bool{false, true}
	if ref == "" {
		scopes = scopes[:1]
	}
	for _, all := range scopes {
		sessions, broken, err := m.List(ctx, dir, all)
		if err != nil {
			if !all && ref != "" {
				continue // not in a repository, or git is broken there: the id may still say which
			}
			return Listed{}, err
		}
		l, err := pick(sessions, broken, ref)
		if !errors.Is(err, superqode.ErrNotFound) {
			return l, err
		}
	}
	if ref == "" {
		return Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no open session of this origin"), "superqode workspace list")
	}
	return Listed{}, m.gone(ctx, dir, ref)
}

func pick(sessions []Listed, broken []Broken, ref string) (Listed, error) {
	var hits []Listed
	for _, l := range sessions {
		id := l.ID.String()
		switch {
		case ref == "":
			if l.State != superqode.StateDone {
				hits = append(hits, l)
			}
		case id == ref:
			return l, nil
		case strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref) || l.Name == ref:
			hits = append(hits, l)
		}
	}
	// A name is given to be used: that some id happens to end in the same letters
	// makes it no less clear.
	if named := slices.DeleteFunc(slices.Clone(hits), func(l Listed) bool { return ref == "" || l.Name != ref }); len(named) > 0 {
		hits = named
	}
	for _, b := range broken {
		if ref != "" && (strings.HasPrefix(b.ID, ref) || strings.HasSuffix(b.ID, ref)) && len(hits) == 0 {
			return Listed{}, fmt.Errorf("session %s: %w", b.ID, b.Err)
		}
	}
	switch len(hits) {
	case 0:
		return Listed{}, superqode.ErrNotFound
	case 1:
		return hits[0], nil
	}
	names := make([]string, 0, 5)
	for _, l := range hits[:min(len(hits), 5)] {
		names = append(names, l.ID.String())
	}
	if ref == "" {
		return Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%d sessions are open here, and none was named: %s", len(hits), strings.Join(names, ", ")), "--session %s", names[0])
	}
	return Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: it matches %d sessions (%s)", ref, len(hits), strings.Join(names, ", ")), "type more of the id, for example --session %s", names[0])
}

// Find returns the session that ref names; docs/formats.md says how. It returns
// an error that wraps ErrNotFound or, when ref is ambiguous, ErrUsage.
func (m *Manager) Find(ctx context.Context, dir, ref string) (*Listed, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return nil, err
	}
	return &l, nil
}
