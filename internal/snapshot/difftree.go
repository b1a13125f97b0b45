package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// Pair is one path, or one rename, that differs between two commits of the store.
// Old or New is nil where the path was not there. Of the permission bits git's
// trees keep the owner's x only: Perm is 0644 or 0755.
type Pair struct {
	Old, New       *Entry
	Added, Removed int // lines, 0 for binary contents
	Binary         bool
}

// DiffTree returns what Diff prints, in the same order: Base, Final and Paths are
// taken from opt. Sizes and links' targets are filled in.
func (s *Store) DiffTree(ctx context.Context, opt DiffOptions) ([]Pair, error) {
	for _, rev := range []string{opt.Base, opt.Final} {
		if rev == "" || strings.HasPrefix(rev, "-") {
			return nil, fmt.Errorf("diff: bad revision %q", rev)
		}
	}
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--full-index"}, sameForAll()...)
	args = append(append(args, opt.Base, opt.Final, "--"), opt.Paths...)
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: args, Stdout: &out}); err != nil {
		return nil, err
	}
	records, err := parseRecords(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	pairs := make([]Pair, 0, len(records))
	for i := range records {
		p, err := records[i].pair()
		if err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
		pairs = append(pairs, p)
	}
	return pairs, s.complete(ctx, pairs)
}

func (r *record) pair() (p Pair, err error) {
	p = Pair{Added: r.added, Removed: r.removed, Binary: r.binary}
	before := r.path
	if r.old != "" {
		before = r.old
	}
	if p.Old, err = treeEntry(before, r.modes[0], r.ids[0]); err == nil {
		p.New, err = treeEntry(r.path, r.modes[1], r.ids[1])
	}
	return p, err
}

// treeEntry makes an entry of what git tells of one side, nil where there is
// none.
func treeEntry(path, mode, id string) (*Entry, error) {
	e := &Entry{Path: path, Kind: File}
	switch mode {
	case "000000":
		return nil, nil
	case "100644":
		e.Perm = 0o644
	case "100755":
		e.Perm = 0o755
	case "120000":
		e.Kind = Link
	default:
		return nil, fmt.Errorf("%w: mode %s of %q", errUnreadable, mode, path)
	}
	var err error
	e.ID, err = ParseID(id)
	return e, err
}

// complete fills in what only the contents tell: a link's target, and a file's
// size.
func (s *Store) complete(ctx context.Context, pairs []Pair) (err error) {
	var files, links []*Entry
	for i := range pairs {
		for _, e := range []*Entry{pairs[i].Old, pairs[i].New} {
			switch {
			case e == nil:
			case e.Kind == Link:
				links = append(links, e)
			default:
				files = append(files, e)
			}
		}
	}
	if len(files) > 0 {
		if err := s.fillSizes(ctx, files); err != nil {
			return err
		}
	}
	if len(links) == 0 {
		return nil
	}
	c, err := s.openReader(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, e := range links {
		var target bytes.Buffer
		if err := c.copy(e.ID, &target); err != nil {
			return fmt.Errorf("read link %q: %w", e.Path, err)
		}
		e.Link, e.Size = target.String(), int64(target.Len())
	}
	return nil
}

// fillSizes asks for all sizes at once: waiting for each answer costs more than
// the answer.
func (s *Store) fillSizes(ctx context.Context, files []*Entry) error {
	var in, out bytes.Buffer
	for _, e := range files {
		in.WriteString(e.ID.String() + "\n")
	}
	if err := s.run(ctx, git.Cmd{Args: []string{"cat-file", "--batch-check=%(objectsize)"}, Stdin: &in, Stdout: &out}); err != nil {
		return err
	}
	for _, e := range files {
		line, err := out.ReadString('\n')
		if err == nil {
			e.Size, err = strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
		}
		if err != nil {
			return superqode.Errorf(superqode.ErrNotFound, "the contents of %q are neither in the store nor in the origin", e.Path)
		}
	}
	return nil
}

// BlobReader reads many contents of a store, one after the other, with one
// process. It is not safe for concurrent use. Close it.
type BlobReader struct{ c *catFile }

// OpenBlobs starts reading.
func (s *Store) OpenBlobs(ctx context.Context) (*BlobReader, error) {
	c, err := s.openReader(ctx)
	if err != nil {
		return nil, err
	}
	return &BlobReader{c}, nil
}

// Copy writes the contents of id to w and checks on the way that they are those.
// The error wraps superqode.ErrNotFound when neither the store nor the origin
// has them.
func (c *BlobReader) Copy(id ID, w io.Writer) error { return c.c.copy(id, w) }

// Close ends the process.
func (c *BlobReader) Close() error { return c.c.close() }
