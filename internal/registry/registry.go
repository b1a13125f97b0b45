package registry

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// List returns the sessions of the origin around dir, or of every origin,
// newest first. It reads superqode's own records and never asks git for its
// worktrees, whose listing grows with their number.
func List(ctx context.Context, m *site.Host, dir string, all bool) ([]state.Listed, []state.Broken, error) {
	projects, err := Projects(ctx, m, dir, all)
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
	sessions, broken := state.LoadAll(dirs)
	sessions = state.WithoutChildren(sessions)
	slices.SortStableFunc(sessions, func(a, b state.Listed) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return sessions, broken, nil
}

// Projects returns the projects of the origin around dir, or all.
func Projects(ctx context.Context, m *site.Host, dir string, all bool) ([]state.Project, error) {
	if !all {
		p, err := Locate(ctx, m, dir)
		return []state.Project{p}, err
	}
	names, err := state.Names(m.WorkingPath())
	if err != nil {
		return nil, err
	}
	var projects []state.Project
	for _, n := range names {
		projects = append(projects, state.Project{Dir: filepath.Join(m.WorkingPath(), n)})
	}
	return projects, nil
}

// find resolves what a person typed: a whole id, a unique prefix or suffix of
// one, a session's name, or nothing for the only session that has not ended.
// Sessions of the origin around dir come first, then those of every origin.
func Resolve(ctx context.Context, m *site.Host, dir, ref string) (state.Listed, error) {
	scopes := []bool{false, true}
	if ref == "" {
		scopes = scopes[:1]
	}
	for _, all := range scopes {
		sessions, broken, err := List(ctx, m, dir, all)
		if err != nil {
			if !all && ref != "" {
				continue // not in a repository, or git is broken there: the id may still say which
			}
			return state.Listed{}, err
		}
		l, err := pick(sessions, broken, ref)
		if !errors.Is(err, superqode.ErrNotFound) {
			return l, err
		}
	}
	if ref == "" {
		return state.Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no open session of this origin"), "superqode workspace list")
	}
	return state.Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session matches %q", ref), "superqode workspace list --all")
}

func pick(sessions []state.Listed, broken []state.Broken, ref string) (state.Listed, error) {
	var hits []state.Listed
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
	if named := slices.DeleteFunc(slices.Clone(hits), func(l state.Listed) bool { return ref == "" || l.Name != ref }); len(named) > 0 {
		hits = named
	}
	for _, b := range broken {
		if ref != "" && (strings.HasPrefix(b.ID, ref) || strings.HasSuffix(b.ID, ref)) && len(hits) == 0 {
			return state.Listed{}, fmt.Errorf("session %s: %w", b.ID, b.Err)
		}
	}
	switch len(hits) {
	case 0:
		return state.Listed{}, superqode.ErrNotFound
	case 1:
		return hits[0], nil
	}
	names := make([]string, 0, 5)
	for _, l := range hits[:min(len(hits), 5)] {
		names = append(names, l.ID.String())
	}
	if ref == "" {
		return state.Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%d sessions are open here, and none was named: %s", len(hits), strings.Join(names, ", ")), "--session %s", names[0])
	}
	return state.Listed{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: it matches %d sessions (%s)", ref, len(hits), strings.Join(names, ", ")), "type more of the id, for example --session %s", names[0])
}
