package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// EntryAt returns the file or link at a path of a commit of the store, nil where
// there is none. Its size and a link's target are not filled in.
func (s *Store) EntryAt(ctx context.Context, rev, path string) (*Entry, error) {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return nil, fmt.Errorf("bad revision %q", rev)
	}
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: []string{"ls-tree", "-z", "--full-tree", rev, "--", path}, Stdout: &out}); err != nil {
		return nil, err
	}
	for rec := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		meta, name, ok := strings.Cut(rec, "\t")
		f := strings.Fields(meta)
		if ok && name == path && len(f) == 3 && f[1] == "blob" {
			return treeEntry(path, f[0], f[2])
		}
	}
	return nil, nil
}

// Tree returns the files and links of a commit of the store. Sizes and links'
// targets are not filled in, and folders are left out.
func (s *Store) Tree(ctx context.Context, rev string) (*Snapshot, error) {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return nil, fmt.Errorf("bad revision %q", rev)
	}
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: []string{"ls-tree", "-r", "-z", "--full-tree", rev}, Stdout: &out}); err != nil {
		return nil, err
	}
	sn := &Snapshot{Root: s.dir, Format: s.format}
	for rec := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		if rec == "" {
			continue
		}
		meta, name, ok := strings.Cut(rec, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("git ls-tree answered %q", rec)
		}
		e, err := treeEntry(name, f[0], f[2])
		if err != nil {
			return nil, err
		}
		sn.Entries = append(sn.Entries, *e)
	}
	slices.SortFunc(sn.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return sn, nil
}
