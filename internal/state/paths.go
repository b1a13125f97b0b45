package state

import (
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Pathspecs turns paths as a person at dir types them into paths below the
// origin's, and the workspace's, root. As with git they count from where the
// person stands, in the origin or in the workspace; from elsewhere they count
// from the root. They are names, no patterns; a folder stands for what is below
// it. No path at all is returned when the root itself is among them. The error
// wraps superqode.ErrUsage for a path that leads out.
func (r *Record) Pathspecs(dir string, args []string) ([]string, error) {
	var out []string
	all := false
	for _, arg := range args {
		rel, err := r.pathspec(dir, arg)
		if err != nil {
			return nil, err
		}
		if rel == "." {
			all = true
			continue
		}
		out = append(out, rel)
	}
	if all {
		return nil, nil
	}
	return out, nil
}

func (r *Record) pathspec(dir, arg string) (string, error) {
	if arg == "" || strings.ContainsRune(arg, 0) {
		return "", superqode.Errorf(superqode.ErrUsage, "%q is not a path", arg)
	}
	full := arg
	if !filepath.IsAbs(arg) {
		here, ok := r.inside(superqode.RealPrefix(dir))
		if !ok {
			here = "."
		}
		full = filepath.Join(string(r.Origin), here, arg)
	}
	for _, try := range []string{filepath.Clean(full),
		filepath.Join(superqode.RealPrefix(filepath.Dir(full)), filepath.Base(full))} {
		if rel, ok := r.inside(try); ok {
			return rel, nil
		}
	}
	return "", superqode.Errorf(superqode.ErrUsage, "%s is outside of %s", text.Printable(arg),
		text.Printable(string(r.Origin)))
}

// inside returns where a path lies below the workspace or the origin; "." is the
// root of either.
func (r *Record) inside(path string) (string, bool) {
	for _, root := range []string{string(r.Inside()), string(r.Origin)} {
		rel, err := filepath.Rel(root, path)
		if root != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return rel, true
		}
	}
	return "", false
}
