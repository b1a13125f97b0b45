package session

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/text"
)

// ClaimTarget reads FILE[:START-END] as a person or a program typed it in dir.
// roots are the folders in which it may lie, the workspace or the origin; the
// target is relative to the one that holds it. A name that exists is taken as it
// is; one that does not and has wildcards is a pattern; one that ends with a
// slash, or is a folder, is a folder.
func ClaimTarget(dir string, roots []string, arg string) (coordinator.Target, error) {
	if arg == "" || strings.ContainsRune(arg, 0) {
		return coordinator.Target{}, superqode.Errorf(superqode.ErrUsage, "%q is not a path", arg)
	}
	name, lines, err := coordinator.SplitRange(arg)
	if err != nil {
		return coordinator.Target{}, err
	}
	if name == "" {
		return coordinator.Target{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q names no file", arg), "FILE:10-20")
	}
	if name != arg && !isThere(under(dir, name)) && isThere(under(dir, arg)) {
		name, lines = arg, coordinator.Lines{} // a:1-2 is a file, and a is none
	}
	full := filepath.Clean(under(dir, name))
	kind := coordinator.KindFile
	st, err := os.Lstat(full)
	switch {
	case err == nil && st.IsDir(), strings.HasSuffix(name, "/"), full == filepath.Clean(dir):
		kind = coordinator.KindDir
	case err != nil && coordinator.IsPattern(name):
		kind = coordinator.KindGlob
	}
	for _, try := range []string{full, filepath.Join(superqode.RealPrefix(filepath.Dir(full)), filepath.Base(full))} {
		for _, root := range roots {
			rel, err := filepath.Rel(root, try)
			if root == "" || err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				continue
			}
			if rel == "." {
				kind = coordinator.KindDir
			}
			return coordinator.NewTarget(kind, rel, lines)
		}
	}
	return coordinator.Target{}, superqode.Errorf(superqode.ErrUsage, "%s is outside of %s", text.Printable(arg), text.Printable(roots[0]))
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
