// Package registry finds sessions: where the project of an origin lies, which
// sessions there are, and which one a person means.
package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// List returns the sessions of the origin around dir, or of every origin,
// newest first. It reads superqode's own records and never asks git for its
// worktrees, whose listing grows with their number.
func List(ctx context.Context, m *site.Host, dir string, all bool) ([]state.Listed, []state.Broken, error) {
	sessions, broken, err := list(ctx, m, dir, all, func(string) bool { return true })
	return state.WithoutChildren(sessions), broken, err
}

// list is List with the agents' own workspaces, of the session folders that are wanted.
func list(ctx context.Context, m *site.Host, dir string, all bool, wanted func(sessionDir string) bool) ([]state.Listed, []state.Broken, error) {
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
			if dir := p.SessionPath(id); wanted(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	sessions, broken := state.LoadAll(dirs)
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
	if ref == "" {
		return onlyOpen(ctx, m, dir)
	}
	if l, ok := whole(ctx, m, dir, ref); ok {
		return l, nil
	}
	for _, all := range []bool{false, true} {
		sessions, broken, err := List(ctx, m, dir, all)
		if err != nil {
			if !all {
				continue // not in a repository, or git is broken there: the id may still say which
			}
			return state.Listed{}, err
		}
		l, err := pick(sessions, broken, ref)
		if !errors.Is(err, superqode.ErrNotFound) {
			return l, err
		}
	}
	err := superqode.Errorf(superqode.ErrNotFound, "no session matches %q", ref)
	return state.Listed{}, superqode.WithHint(err, "superqode workspace list --all")
}

// onlyOpen is Resolve for nothing.
func onlyOpen(ctx context.Context, m *site.Host, dir string) (state.Listed, error) {
	sessions, _, err := list(ctx, m, dir, false, state.MayBeOpen)
	if err != nil {
		return state.Listed{}, err
	}
	l, err := pick(slices.DeleteFunc(sessions, hasParent), nil, "")
	if errors.Is(err, superqode.ErrNotFound) {
		err = superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no open session of this origin"), "superqode workspace list")
	}
	return l, err
}

// whole is Resolve for the whole id of a session of the origin around dir.
func whole(ctx context.Context, m *site.Host, dir, ref string) (l state.Listed, ok bool) {
	if _, err := superqode.ParseSessionID(ref); err != nil {
		return l, false
	}
	p, err := Locate(ctx, m, dir)
	if err == nil {
		l, err = state.Load(p.SessionPath(ref))
	}
	return l, err == nil && !hasParent(l)
}

// hasParent reports whether a session is an agent's own of another one that is there.
func hasParent(l state.Listed) bool {
	if l.Parent.IsZero() {
		return false
	}
	_, err := state.Load(filepath.Join(filepath.Dir(l.Dir), l.Parent.String()))
	return err == nil
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
	if named := slices.DeleteFunc(slices.Clone(hits),
		func(l state.Listed) bool { return ref == "" || l.Name != ref }); len(named) > 0 {
		hits = named
		open := slices.DeleteFunc(slices.Clone(named), func(l state.Listed) bool { return l.State.Ended() })
		if len(open) == 1 {
			hits = open
		}
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
		err := superqode.Errorf(superqode.ErrUsage, "%d sessions are open here, and none was named: %s", len(hits),
			strings.Join(names, ", "))
		return state.Listed{}, superqode.WithHint(err, "--session %s", names[0])
	}
	err := superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: it matches %d sessions (%s)", ref, len(hits),
		strings.Join(names, ", "))
	return state.Listed{}, superqode.WithHint(err, "type more of the id, for example --session %s", names[0])
}

// Locate finds the project folder of the origin around dir for commands that
// only look at sessions. Starting git three times costs more than reading five
// hundred records, so the common cases are found by looking for .git as git
// does; a project folder that exists under the hash of exactly that path is
// proof enough. Whatever is not found that way git decides.
func Locate(ctx context.Context, m *site.Host, dir string) (state.Project, error) {
	if p, _, ok, _ := m.Pointed(dir); ok { // its session may be lost: the project is known all the same
		return p, nil
	}
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return state.Project{}, site.NotFoundOr(err, dir)
	}
	for d := real; ; d = filepath.Dir(d) {
		if common := CommonDirOf(d); common != "" {
			if p := m.ProjectOf(&site.Origin{Top: d, Repo: &git.Repo{CommonDir: common}}); p.Exists() {
				return p, nil
			}
			break
		}
		if p := m.ProjectOf(&site.Origin{Top: d}); p.Exists() {
			return p, nil
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return state.Project{}, err
	}
	return m.ProjectOf(o), nil
}

// CommonDirOf returns the git common dir of the work tree whose root is dir, its
// links resolved, or "" when dir is no such root.
func CommonDirOf(dir string) string {
	gitDir := filepath.Join(dir, ".git")
	st, err := os.Stat(gitDir)
	if err != nil {
		return ""
	}
	if !st.IsDir() {
		target, ok := strings.CutPrefix(atomicfile.ReadLine(gitDir), "gitdir: ")
		if !ok {
			return ""
		}
		gitDir = superqode.Under(dir, target)
	}
	if common := atomicfile.ReadLine(filepath.Join(gitDir, "commondir")); common != "" {
		gitDir = superqode.Under(gitDir, common)
	}
	if _, err := os.Lstat(filepath.Join(gitDir, "HEAD")); err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(gitDir)
	if err != nil {
		return ""
	}
	return real
}

// OriginOf returns the origin of the session in whose workspace dir lies; false
// when it lies in none. It reads the session's record and asks no git.
func OriginOf(m *site.Host, dir string) (string, bool) {
	working, err := filepath.EvalSymlinks(m.WorkingPath())
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(working, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	parts := strings.Split(rel, string(filepath.Separator)) // project, "qe", session, …
	if len(parts) < 3 || parts[1] != "qe" {
		return "", false
	}
	p := state.Project{Dir: filepath.Join(working, parts[0])}
	id := p.Leased(parts[2])
	if id == "" {
		return "", false
	}
	l, err := state.Load(p.SessionPath(id))
	return string(l.Origin), err == nil && l.Origin != ""
}

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
