package mode

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// dropIgnored takes out of now what the program created and git ignores: build
// output, caches, installed dependencies. They are the program's, they are in
// no patch, and reading them all could take minutes. What base knows stays,
// ignored or not. It returns how many entries were dropped, and the topmost of
// their paths.
//
// The configuration is the repository's own: none that the program may have planted
// in the workspace is read.
func dropIgnored(ctx context.Context, s *site.Site, now *snapshot.Snapshot) (int, []superqode.RelPath, error) {
	fresh := newEntries(s.Base, now)
	if len(fresh) == 0 || s.Rec.CommonDir == "" {
		return 0, nil, nil
	}
	repo, err := s.Repo(ctx)
	if err != nil {
		return 0, nil, err
	}
	tree, err := linked.IgnoreTree(ctx, repo, site.WorkOrOrigin(s))
	if err != nil {
		return 0, nil, err
	}
	dropped := make(map[superqode.RelPath]bool)
	var top []superqode.RelPath
	for _, e := range fresh {
		if err := context.Cause(ctx); err != nil {
			return 0, nil, err
		}
		if !tree.Ignored(e.Path, e.Kind == snapshot.Dir) {
			continue
		}
		dropped[e.Path] = true
		if !dropped[e.Path.Parent()] {
			top = append(top, e.Path)
		}
	}
	now.Entries = slices.DeleteFunc(now.Entries, func(e snapshot.Entry) bool { return dropped[e.Path] })
	return len(dropped), top, nil
}

// newEntries returns the entries of now whose paths base does not have.
func newEntries(base, now *snapshot.Snapshot) []*snapshot.Entry {
	var fresh []*snapshot.Entry
	for old, e := range snapshot.Join(base.Entries, now.Entries) {
		if old == nil {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// pathSet is a set of paths that stand for themselves and all below them.
type pathSet map[superqode.RelPath]bool

func setOf(paths []superqode.RelPath) pathSet {
	set := make(pathSet, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// covers reports whether path is in the set or below a path of it.
func (set pathSet) covers(path superqode.RelPath) bool {
	if len(set) == 0 {
		return false
	}
	for p := path; p != ""; p = p.Parent() {
		if set[p] {
			return true
		}
	}
	return false
}

// writePaths writes a set of paths into a file of the session's folder, each ended by
// NUL.
func writePaths(s *site.Site, name string, paths iter.Seq[superqode.RelPath]) error {
	var b bytes.Buffer
	for p := range paths {
		b.WriteString(string(p))
		b.WriteByte(0)
	}
	return atomicfile.Write(filepath.Join(s.Folder, name), b.Bytes(), 0o600)
}

// readPaths reads what writePaths wrote.
func readPaths(s *site.Site, name string) (pathSet, error) {
	data, err := site.Held(s, name, atomicfile.Read)
	if err != nil {
		return nil, err
	}
	set := pathSet{}
	for p := range bytes.SplitSeq(data, []byte{0}) {
		if len(p) > 0 {
			set[superqode.RelPath(p)] = true
		}
	}
	return set, nil
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
func InsideGit(path superqode.RelPath) bool {
	for ; strings.Contains(string(path), ".git"); path = path.Parent() {
		if path.Name() == ".git" {
			return true
		}
	}
	return false
}

type folderSize struct {
	name superqode.RelPath
	size int64
}

// ignoredSizes sums up the topmost ignored paths of a tree, the biggest first.
func ignoredSizes(tree *snapshot.Snapshot, ignored []superqode.RelPath) (sizes []folderSize, total int64) {
	at := -1
	for i := range tree.Entries {
		e := &tree.Entries[i]
		if k, ok := slices.BinarySearch(ignored, e.Path); ok {
			sizes = append(sizes, folderSize{name: ignored[k]})
			at = len(sizes) - 1
		} else if at < 0 || !superqode.Within(e.Path, sizes[at].name) {
			if at = slices.IndexFunc(sizes, func(f folderSize) bool { return superqode.Within(e.Path, f.name) }); at < 0 {
				continue
			}
		}
		sizes[at].size += e.Size
		total += e.Size
	}
	slices.SortStableFunc(sizes, func(a, b folderSize) int { return cmp.Compare(b.size, a.size) })
	return sizes, total
}
