package registry

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Locate finds the project folder of the origin around dir for commands that
// only look at sessions. Starting git three times costs more than reading five
// hundred records, so the common cases are found by looking for .git as git
// does; a project folder that exists under the hash of exactly that path is
// proof enough. Whatever is not found that way git decides.
func Locate(ctx context.Context, m *site.Host, dir string) (state.Project, error) {
	if p, _, ok := mode.Pointed(m, dir); ok {
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
