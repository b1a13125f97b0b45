package store

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// DiffOptions says what Diff prints.
type DiffOptions struct {
	Base, Final string   // commits or refs of the store
	Paths       []string // only these files and folders, taken literally; empty for all
	Stat        bool     // git's --stat table instead of the patch
	Color       bool     // with git's default colours
	Context     int      // lines of context; 0 means git's default, 3
	Bare        bool     // no line of context at all
}

// Diff writes the difference of two commits of the store to w, as a patch that
// git apply takes: binary contents and whole ids included, renames found.
//
// No configuration and no attributes of the user take part. What counts as
// binary is decided by git from the contents alone (a NUL byte in the first
// 8000), never by a "binary" or "-diff" attribute, and textconv is off: such a
// patch would not apply, or not to the raw bytes.
func (s *Store) Diff(ctx context.Context, opt DiffOptions, w io.Writer) error {
	args := []string{"diff-tree", "-r"}
	if opt.Stat {
		args = append(args, "--stat")
	} else {
		args = append(args, "-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/")
	}
	if opt.Color {
		args = append(args, "--color=always")
	}
	if opt.Bare {
		args = append(args, "-U0")
	}
	if opt.Context > 0 {
		args = append(args, "-U"+strconv.Itoa(opt.Context))
	}
	if err := checkRevisions(opt.Base, opt.Final); err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	args = append(append(args, sameForAll()...), opt.Base, opt.Final, "--")
	return s.run(ctx, git.Cmd{Args: append(args, opt.Paths...), Stdout: w})
}

// sameForAll are the options that make a comparison the same for every user.
func sameForAll() []string { return []string{"-M", "--no-ext-diff", "--no-textconv", "--no-relative"} }

// checkRevisions refuses what git would take for an option.
func checkRevisions(revs ...string) error {
	for _, rev := range revs {
		if rev == "" || strings.HasPrefix(rev, "-") {
			return fmt.Errorf("bad revision %q", rev)
		}
	}
	return nil
}

// records runs git diff-tree on two trees, or commits, with what args add.
func (s *Store) records(ctx context.Context, env []string, args ...string) ([]record, error) {
	all := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--full-index"}, sameForAll()...)
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: append(all, args...), Env: env, Stdout: &out}); err != nil {
		return nil, err
	}
	return parseRecords(out.Bytes())
}

// Pair is one path, or one rename, that differs between two commits of the store.
// Old or New is nil where the path was not there. Of the permission bits git's
// trees keep the owner's x only: Perm is 0644 or 0755.
type Pair struct {
	Old, New       *snapshot.Entry
	Added, Removed int // lines, 0 for binary contents
	Binary         bool
}

// DiffTree returns what Diff prints, in the same order: Base, Final and Paths are
// taken from opt. Sizes and links' targets are filled in.
func (s *Store) DiffTree(ctx context.Context, opt DiffOptions) ([]Pair, error) {
	if err := checkRevisions(opt.Base, opt.Final); err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	records, err := s.records(ctx, nil, append([]string{opt.Base, opt.Final, "--"}, opt.Paths...)...)
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
	if p.Old, err = treeEntry(cmp.Or(r.old, r.path), r.modes[0], r.ids[0]); err == nil {
		p.New, err = treeEntry(r.path, r.modes[1], r.ids[1])
	}
	return p, err
}

// treeEntry makes an entry of what git tells of one side, nil where there is
// none.
func treeEntry(path superqode.RelPath, mode, id string) (*snapshot.Entry, error) {
	e := &snapshot.Entry{Path: path, Kind: snapshot.File}
	switch mode {
	case "000000":
		return nil, nil
	case "100644":
		e.Perm = 0o644
	case "100755":
		e.Perm = 0o755
	case "120000":
		e.Kind = snapshot.Link
	default:
		return nil, fmt.Errorf("%w: mode %s of %q", errUnreadable, mode, path)
	}
	var err error
	e.ID, err = snapshot.ParseID(id)
	return e, err
}

// complete fills in what only the contents tell: a link's target, and a file's
// size.
func (s *Store) complete(ctx context.Context, pairs []Pair) (err error) {
	var files, links []*snapshot.Entry
	for i := range pairs {
		for _, e := range []*snapshot.Entry{pairs[i].Old, pairs[i].New} {
			switch {
			case e == nil:
			case e.Kind == snapshot.Link:
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
	c, err := s.OpenReader(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, e := range links {
		var target bytes.Buffer
		if err := c.Copy(e.ID, &target); err != nil {
			return fmt.Errorf("read link %q: %w", e.Path, err)
		}
		e.Link, e.Size = target.String(), int64(target.Len())
	}
	return nil
}

// fillSizes asks for all sizes at once: waiting for each answer costs more than
// the answer.
func (s *Store) fillSizes(ctx context.Context, files []*snapshot.Entry) error {
	var in bytes.Buffer
	for _, e := range files {
		in.WriteString(e.ID.String() + "\n")
	}
	out, err := s.out(ctx, &in, "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	for _, e := range files {
		var line string
		line, out, _ = strings.Cut(out, "\n")
		if e.Size, err = strconv.ParseInt(line, 10, 64); err != nil {
			return superqode.Errorf(superqode.ErrNotFound, "the contents of %q are neither in the store nor in the origin", e.Path)
		}
	}
	return nil
}

// Describe returns changes with what only git can tell: the lines added and
// removed, what is binary, and renames with edits, exactly as git diff --numstat
// -M has them for raw contents. The contents of final are read below final.Root,
// those of base must be in the store or in the origin. Changes that git's trees
// do not show (permission bits other than the owner's x, special files, empty
// folders) are returned as they came, with 0 lines for those of mode alone.
//
// It costs one git process on two trees that hold the changed paths alone, in an
// objects folder that is gone afterwards.
func (s *Store) Describe(ctx context.Context, base, final *snapshot.Snapshot, changes []superqode.Change) (_ []superqode.Change, err error) {
	old, fresh := endsOf(base, final, changes)
	if len(old)+len(fresh) == 0 {
		return withoutLines(changes), context.Cause(ctx)
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
	records, err := s.records(ctx, []string{"GIT_OBJECT_DIRECTORY=" + objects}, a.String(), b.String())
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	return merge(changes, records), nil
}

// DescribeStored is Describe for two snapshots that are commits, or refs, of the
// store already.
func (s *Store) DescribeStored(ctx context.Context, base, final string, changes []superqode.Change) ([]superqode.Change, error) {
	records, err := s.records(ctx, nil, base, final, "--")
	if err != nil {
		return nil, fmt.Errorf("describe changes: %w", err)
	}
	return merge(changes, records), nil
}

// endsOf returns the entries that git's trees hold at the changed paths before
// and after, each sorted. Where one side is too large for the store, neither is there.
func endsOf(base, final *snapshot.Snapshot, changes []superqode.Change) (old, fresh []snapshot.Entry) {
	for i := range changes {
		for _, p := range []superqode.RelPath{changes[i].Path, changes[i].OldPath} {
			before, after := base.Find(p), final.Find(p)
			if before.IsLarge() || after.IsLarge() {
				continue
			}
			if before != nil && before.InTree() {
				old = append(old, *before)
			}
			if after != nil && after.InTree() {
				fresh = append(fresh, *after)
			}
		}
	}
	return sortedOnce(old), sortedOnce(fresh)
}

func sortedOnce(entries []snapshot.Entry) []snapshot.Entry {
	slices.SortFunc(entries, snapshot.ByPath)
	return slices.CompactFunc(entries, func(a, b snapshot.Entry) bool { return a.Path == b.Path })
}

// tinyTrees fills a temporary objects folder with trees of the entries and the
// contents of the fresh ones, as they are now.
func (s *Store) tinyTrees(ctx context.Context, objects, root string, old, fresh []snapshot.Entry) (a, b snapshot.ID, err error) {
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
func (p *packWriter) addEnds(ctx context.Context, root string, old, fresh []snapshot.Entry) (a, b snapshot.ID, err error) {
	want := make([]*snapshot.Entry, len(fresh))
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
	fresh = slices.DeleteFunc(fresh, func(e snapshot.Entry) bool { return e.ID.IsZero() })
	enc := packEncoder{format: p.repo.format, level: p.level}
	before, after := buildTree(p.repo.format, old), buildTree(p.repo.format, fresh)
	err = p.addTrees(distinctTrees([]*treeNode{before, after}, math.MaxInt), &enc)
	return before.id, after.id, err
}

// record is one line of git's answer.
type record struct {
	status         byte // A, D, M, T or R
	same           bool // the contents are the same
	path, old      superqode.RelPath
	added, removed int
	binary         bool
	modes, ids     [2]string // before and after, as git prints them
}

var errUnreadable = errors.New("cannot read git's answer")

// parseRecords reads diff-tree -z --raw --numstat: all raw records come first,
// then as many numstat records in the same order.
func parseRecords(out []byte) ([]record, error) {
	next := func() (superqode.RelPath, bool) {
		f, rest, ok := bytes.Cut(out, []byte{0})
		out = rest
		return superqode.RelPath(f), ok
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
		path := superqode.RelPath(f[2])
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
func merge(changes []superqode.Change, records []record) []superqode.Change {
	given := make(map[superqode.RelPath]*superqode.Change, len(changes))
	before := make(map[superqode.RelPath]uint32, len(changes)) // the modes that the paths had
	for i := range changes {
		c := &changes[i]
		given[c.Path] = c
		before[cmp.Or(c.OldPath, c.Path)] |= c.OldMode
	}
	told := make(map[superqode.RelPath]bool, 2*len(records))
	out := make([]superqode.Change, 0, len(changes))
	for i := range records {
		r := &records[i]
		told[r.path], told[r.old] = true, true
		out = append(out, r.change(given[r.path], before[cmp.Or(r.old, r.path)]))
	}
	for _, c := range withoutLines(changes) {
		// Half of a given rename is another record's whole: both its paths are
		// reported.
		if !told[c.Path] {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b superqode.Change) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// change makes a Change of one record. given is what the comparison of the
// snapshots said of the same path, or nil, and before the mode that the old path had.
func (r *record) change(given *superqode.Change, before uint32) (c superqode.Change) {
	if given != nil {
		c = *given
	}
	c.Path, c.OldPath = r.path, r.old
	c.LinesAdded, c.LinesRemoved, c.Binary = r.added, r.removed, r.binary
	c.OldMode = before
	if given != nil && given.Type == superqode.ChangeKind {
		return c // git sees half of it where a folder or a FIFO takes part
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
	return c
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
