package snapshot

import (
	"bytes"
	"context"
	"fmt"
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
