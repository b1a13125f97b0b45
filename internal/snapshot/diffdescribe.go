package snapshot

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// Describe returns changes with what only git can tell: the lines added and
// removed, what is binary, and renames with edits, exactly as git diff --numstat
// -M has them for raw contents. The contents of final are read below final.Root,
// those of base must be in the store or in the origin. Changes that git's trees
// do not show (permission bits other than the owner's x, special files, empty
// folders) are returned as they came, with 0 lines for those of mode alone.
//
// It costs one git process on two trees that hold the changed paths alone, in an
// objects folder that is gone afterwards.
func (s *Store) Describe(ctx context.Context, base, final *Snapshot, changes []superqode.Change) (_ []superqode.Change, err error) {
	old, fresh := endsOf(base, final, changes)
	if len(old)+len(fresh) == 0 {
		return withoutLines(changes), nil
	}
	objects, err := os.MkdirTemp(s.dir, "describe-*")
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(objects)) }()
	a, b, err := s.tinyTrees(ctx, objects, final.Root, old, fresh)
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: describeArgs(a.String(), b.String()), Env: []string{"GIT_OBJECT_DIRECTORY=" + objects}, Stdout: &out}); err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	records, err := parseRecords(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	return merge(base, final, changes, records)
}

func describeArgs(a, b string) []string {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--full-index"}, sameForAll()...)
	return append(args, a, b)
}

// DescribeStored is Describe for two snapshots that are commits, or refs, of the
// store already.
func (s *Store) DescribeStored(ctx context.Context, base, final *Snapshot, changes []superqode.Change, refs [2]string) ([]superqode.Change, error) {
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: append(describeArgs(refs[0], refs[1]), "--"), Stdout: &out}); err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	records, err := parseRecords(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	return merge(base, final, changes, records)
}

// endsOf returns the entries that git's trees hold at the changed paths before
// and after, each sorted.
func endsOf(base, final *Snapshot, changes []superqode.Change) (old, fresh []Entry) {
	collect := func(s *Snapshot, out []Entry, path string) []Entry {
		if path != "" {
			if e := s.Find(path); e != nil && e.InTree() {
				out = append(out, *e)
			}
		}
		return out
	}
	for i := range changes {
		for _, p := range []string{changes[i].Path.String(), changes[i].OldPath.String()} {
			old, fresh = collect(base, old, p), collect(final, fresh, p)
		}
	}
	return sortedOnce(old), sortedOnce(fresh)
}

func sortedOnce(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(entries, func(a, b Entry) bool { return a.Path == b.Path })
}

// tinyTrees fills a temporary objects folder with trees of the entries and the
// contents of the fresh ones, as they are now.
func (s *Store) tinyTrees(ctx context.Context, objects, root string, old, fresh []Entry) (a, b ID, err error) {
	if err := errors.Join(os.Mkdir(filepath.Join(objects, "pack"), 0o700), os.Mkdir(filepath.Join(objects, "info"), 0o700)); err != nil {
		return a, b, err
	}
	borrowed, err := alternates(filepath.Join(s.dir, "objects"), 0)
	if err != nil {
		return a, b, err
	}
	if err := os.WriteFile(filepath.Join(objects, "info/alternates"), borrowed, 0o600); err != nil {
		return a, b, err
	}
	p, err := s.newPack(objects, zlib.NoCompression, len(fresh))
	if err != nil {
		return a, b, err
	}
	a, b, err = p.addEnds(ctx, root, old, fresh)
	if err != nil {
		return a, b, errors.Join(err, p.abort())
	}
	return a, b, p.finish(ctx, false)
}

// addEnds adds the contents of fresh and both trees. The tree after tells what
// was read, which is no more what was scanned if a program is still at work.
func (p *packWriter) addEnds(ctx context.Context, root string, old, fresh []Entry) (a, b ID, err error) {
	want := make([]*Entry, len(fresh))
	for i := range fresh {
		want[i] = &fresh[i]
	}
	ids, err := p.addFiles(ctx, root, want)
	if err != nil {
		return a, b, err
	}
	for i := range fresh {
		fresh[i].ID = ids[i]
	}
	fresh = slices.DeleteFunc(fresh, func(e Entry) bool { return e.ID.IsZero() })
	enc := packEncoder{format: p.store.format, level: p.level}
	before, after := buildTree(p.store.format, old), buildTree(p.store.format, fresh)
	err = errors.Join(p.addTrees(before.all(nil), &enc), p.addTrees(after.all(nil), &enc))
	return before.id, after.id, err
}

// all appends n and the trees below it to out.
func (n *treeNode) all(out []*treeNode) []*treeNode {
	out = append(out, n)
	for _, s := range n.subs {
		out = s.all(out)
	}
	return out
}

// record is one line of git's answer.
type record struct {
	status         byte // A, D, M, T or R
	same           bool // the contents are the same
	path, old      string
	added, removed int
	binary         bool
	modes, ids     [2]string // before and after, as git prints them
}

var errUnreadable = errors.New("can not read git's answer")

// parseRecords reads diff-tree -z --raw --numstat: all raw records come first,
// then as many numstat records in the same order.
func parseRecords(out []byte) ([]record, error) {
	next := func() (string, bool) {
		f, rest, ok := bytes.Cut(out, []byte{0})
		out = rest
		return string(f), ok
	}
	var records []record
	for len(out) > 0 && out[0] == ':' {
		head, _ := next()
		// :100644 100755 <id> <id> R087
		f := bytes.Fields([]byte(head))
		if len(f) != 5 || len(f[4]) == 0 {
			return nil, fmt.Errorf("%w: %q", errUnreadable, head)
		}
		r := record{
			status: f[4][0], same: bytes.Equal(f[2], f[3]),
			modes: [2]string{string(f[0][1:]), string(f[1])}, ids: [2]string{string(f[2]), string(f[3])},
		}
		var ok bool
		if r.status == 'R' || r.status == 'C' {
			r.old, _ = next()
		}
		if r.path, ok = next(); !ok || r.path == "" {
			return nil, fmt.Errorf("%w: a path is missing", errUnreadable)
		}
		records = append(records, r)
	}
	for i := range records {
		line, _ := next()
		f := bytes.SplitN([]byte(line), []byte{'\t'}, 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("%w: %q", errUnreadable, line)
		}
		path := string(f[2])
		if path == "" { // a rename: both paths follow
			_, _ = next()
			path, _ = next()
		}
		r := &records[i]
		if path != r.path {
			return nil, fmt.Errorf("%w: %q where %q was expected", errUnreadable, path, r.path)
		}
		if r.binary = f[0][0] == '-'; r.binary {
			continue
		}
		var err1, err2 error
		r.added, err1 = strconv.Atoi(string(f[0]))
		r.removed, err2 = strconv.Atoi(string(f[1]))
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	return records, nil
}

// merge puts git's records in the place of the changes that they tell of.
func merge(base, final *Snapshot, changes []superqode.Change, records []record) ([]superqode.Change, error) {
	given := make(map[string]*superqode.Change, len(changes))
	for i := range changes {
		given[changes[i].Path.String()] = &changes[i]
	}
	told := make(map[string]bool, 2*len(records))
	out := make([]superqode.Change, 0, len(changes))
	for i := range records {
		r := &records[i]
		c, err := r.change(base, final, given[r.path])
		if err != nil {
			return nil, err
		}
		told[r.path] = true
		told[r.old] = true
		out = append(out, c)
	}
	for _, c := range withoutLines(changes) {
		// Half of a given rename is another record's whole: both its paths are told.
		if !told[c.Path.String()] {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b superqode.Change) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	return out, nil
}

// change makes a Change of one record. given is what the comparison of the
// snapshots said of the same path, or nil.
func (r *record) change(base, final *Snapshot, given *superqode.Change) (c superqode.Change, err error) {
	if given != nil {
		c = *given
	}
	if c.Path, err = superqode.ParseRelPath(r.path); err != nil {
		return c, err
	}
	c.OldPath = superqode.RelPath{}
	c.LinesAdded, c.LinesRemoved, c.Binary = r.added, r.removed, r.binary
	before := r.path
	if r.old != "" {
		before = r.old
		if c.OldPath, err = superqode.ParseRelPath(r.old); err != nil {
			return c, err
		}
	}
	c.OldMode, c.NewMode = modeAt(base, before), modeAt(final, r.path)
	if given != nil && given.Type == superqode.ChangeKind {
		return c, nil // git sees half of it where a folder or a FIFO takes part
	}
	switch {
	case r.status == 'A':
		c.Type, c.OldMode = superqode.ChangeCreated, 0
	case r.status == 'D':
		c.Type, c.NewMode = superqode.ChangeDeleted, 0
	case r.status == 'R':
		c.Type = superqode.ChangeRenamed
	case r.status == 'T':
		c.Type = superqode.ChangeKind
	case r.same:
		c.Type = superqode.ChangeMode
	default:
		c.Type = superqode.ChangeModified
	}
	return c, nil
}

func modeAt(s *Snapshot, path string) uint32 {
	if e := s.Find(path); e != nil {
		return e.Mode()
	}
	return 0
}

// withoutLines is for changes whose contents git did not compare.
func withoutLines(changes []superqode.Change) []superqode.Change {
	out := slices.Clone(changes)
	for i := range out {
		if out[i].Type == superqode.ChangeMode {
			out[i].LinesAdded, out[i].LinesRemoved = 0, 0
		}
	}
	return out
}
