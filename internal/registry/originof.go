package registry

import (
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

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
	if _, err := superqode.ParseSessionID(parts[2]); err != nil {
		return "", false
	}
	l, err := state.Load(state.Project{Dir: filepath.Join(working, parts[0])}.SessionPath(parts[2]))
	return string(l.Origin), err == nil && l.Origin != ""
}
