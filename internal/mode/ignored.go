package mode

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// pathSet is a set of paths that stand for themselves and all below them.
type pathSet map[string]bool

func ignoredSet(paths []string) pathSet {
	set := make(pathSet, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// covers reports whether path is in the set or below a path of it.
func (set pathSet) covers(path string) bool {
	if len(set) == 0 {
		return false
	}
	for p := path; p != ""; p = snapshot.Parent(p) {
		if set[p] {
			return true
		}
	}
	return false
}

func writeIgnored(s *site.Site, paths []string) error {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return atomicfile.Write(filepath.Join(s.Folder, state.IgnoredFile), []byte(b.String()), 0o600)
}

func readIgnored(s *site.Site) (pathSet, error) {
	data, err := atomicfile.Read(filepath.Join(s.Folder, state.IgnoredFile))
	if err != nil {
		return nil, err
	}
	return ignoredSet(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")), nil
}

// patchable returns the part of a snapshot of the origin that a patch is about:
// nothing that git ignored when the session began, and no nested repository's
// own files.
func patchable(sn *snapshot.Snapshot, ignored pathSet) *snapshot.Snapshot {
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return InsideGit(e.Path) || ignored.covers(e.Path) })
	return &out
}

// InsideGit reports whether a path leads through a .git folder, or is one.
func InsideGit(path string) bool {
	return skipGit(path, 0) || strings.HasPrefix(path, ".git/") || strings.Contains(path, "/.git/")
}
