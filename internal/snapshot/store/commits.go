package store

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// BaseSuffix ends the name of the ref that says on what the commits of the ref
// without it stand: a store keeps those after it and borrows the ones before.
const BaseSuffix = "-base"

// ErrIncomplete says that a history cannot be copied, since a part of it is nowhere.
var ErrIncomplete = errors.New("it is not whole")

// CopyCommits says which commits are copied into a store.
type CopyCommits struct {
	Ref     string   // refs/superqode/<session>/<name>: what is to lead to Head
	Head    string   // a commit's id
	Not     []string // ids of commits whose history the origin has
	Objects string   // an objects folder that holds what is new; "" for the origin's own
}

// CopyCommits copies what of Head's history is not Not's into the store, whole, so
// that it outlives the folder that it comes from, and points Ref at it. Contents
// are hashed and checked on the way (git index-pack --strict): the folder may be a
// program's own. It returns how many commits are new; with none nothing is done. The error
// wraps ErrIncomplete where objects are missing.
func (s *Store) CopyCommits(ctx context.Context, c CopyCommits) (n int, err error) {
	var env []string
	if c.Objects != "" {
		env = append(env, lending(c.Objects))
	}
	var out bytes.Buffer
	count := git.Cmd{Args: []string{"rev-list", "--count", "--stdin"}, Env: env, Stdin: revisions(c.Head, c.Not), Stdout: &out}
	if err := s.run(ctx, count); err != nil {
		if _, ok := errors.AsType[*git.ExitError](err); ok {
			err = fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		return 0, err
	}
	if _, err := fmt.Sscan(out.String(), &n); err != nil || n == 0 {
		return 0, err
	}
	unlock, err := s.share(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f, err := os.CreateTemp(s.dir, ".commits-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	pack := []string{"pack-objects", "-q", "--revs", "--stdout", "--no-reuse-delta"}
	if err := s.run(ctx, git.Cmd{Args: pack, Env: env, Stdin: revisions(c.Head, c.Not), Stdout: f}); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := s.out(ctx, f, "index-pack", "--stdin", "--strict"); err != nil {
		return 0, fmt.Errorf("check the copied commits: %w", err)
	}
	return n, s.writeRef(c.Ref, c.Head)
}

func revisions(head string, not []string) *bytes.Buffer {
	in := bytes.NewBufferString(head + "\n")
	for _, id := range not {
		in.WriteString("^" + id + "\n")
	}
	return in
}

// DeleteRef deletes one ref, if it is there.
func (s *Store) DeleteRef(ctx context.Context, ref string) error {
	if !validRef(ref) {
		return fmt.Errorf("bad ref name %q", ref)
	}
	_, err := s.out(ctx, nil, "update-ref", "-d", ref)
	return err
}

// RevList runs git rev-list in the store: commits of head that are not of not.
func (s *Store) RevList(ctx context.Context, args []string, head string, not []string) (string, error) {
	return s.out(ctx, revisions(head, not), append(append([]string{"rev-list"}, args...), "--stdin")...)
}

// WriteMails writes each commit as a mail for git am, with its difference from its
// first parent. Commits that change nothing are left out, since git am stops at them.
// It returns how many mails there are.
func (s *Store) WriteMails(ctx context.Context, commits []string, w io.Writer) (int, error) {
	list, err := s.withChanges(ctx, commits)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return len(list), s.run(ctx, git.Cmd{
		Args: []string{
			"-c", "core.quotePath=true", "log", "--no-walk=unsorted", "--stdin", "-m", "--first-parent", "--pretty=email", "--encoding=UTF-8", "--no-notes", "--no-show-signature", "--no-mailmap",
			"--stat=72", "--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
		},
		Stdin: strings.NewReader(strings.Join(list, "\n") + "\n"), Stdout: w,
	})
}

// withChanges leaves out the commits whose tree is their first parent's.
func (s *Store) withChanges(ctx context.Context, commits []string) ([]string, error) {
	var ask strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&ask, "%s^{tree}\n%s^1^{tree}\n", c, c)
	}
	out, err := s.out(ctx, strings.NewReader(ask.String()), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	trees := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(trees) != 2*len(commits) {
		return nil, fmt.Errorf("git told of %d trees of %d commits", len(trees), len(commits))
	}
	var list []string
	for i, c := range commits {
		if trees[2*i] != trees[2*i+1] {
			list = append(list, c)
		}
	}
	return list, nil
}

// CommitOptions describes a commit of a snapshot.
type CommitOptions struct {
	Parent  string    // commit id, "" for none
	Message string    // a newline is added at its end if it has none
	When    time.Time // author's and committer's date, whole seconds, in UTC
}

// CommitRequest is one commit of several that are made together.
type CommitRequest struct {
	Ref  string // refs/superqode/<session>/<name>; "" for one that only a later commit of the list leads to
	Snap *snapshot.Snapshot
	CommitOptions
	OnPrevious bool // its parent is the commit before it in the list
}

// Commit makes a commit of s, points ref (refs/superqode/<session>/<name>) at it
// and returns its id. The contents must be in the store or in the origin already
// and every id known. Empty folders, special files and what git refuses to hold
// (paths through .git) are left out; of the permission bits git keeps the
// owner's x. The same snapshot and options give the same commit.
//
// Only trees that neither store nor origin has are written, as one synced pack.
func (s *Store) Commit(ctx context.Context, ref string, snap *snapshot.Snapshot, opt CommitOptions) (string, error) {
	ids, err := s.CommitAll(ctx, []CommitRequest{{Ref: ref, Snap: snap, CommitOptions: opt}})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// CommitAll is Commit for several, which costs little more than one. The refs are
// written in the order of the list, after all objects.
func (s *Store) CommitAll(ctx context.Context, list []CommitRequest) (ids []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, r := range list {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	unlock, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	enc := packEncoder{format: s.format, level: zlib.BestSpeed}
	roots, commits := make([]*treeNode, len(list)), make([][]byte, len(list))
	done := true
	for i := range list {
		roots[i] = buildTree(s.format, list[i].Snap.Entries)
		if list[i].OnPrevious && i > 0 {
			list[i].Parent = ids[i-1]
		}
		encoded, id, err := enc.encode(nil, commitObject, commitData(roots[i].id, list[i].CommitOptions))
		if err != nil {
			return nil, err
		}
		commits[i], ids = encoded, append(ids, id.String())
		done = done && s.pointsAt(list[i].Ref, id.String())
	}
	if done {
		return ids, nil
	}
	fresh, err := s.missingTrees(ctx, roots)
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	if err := s.writeCommits(ctx, fresh, ids, commits, &enc); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	for i, r := range list {
		if r.Ref == "" {
			continue
		}
		if err := s.writeRef(r.Ref, ids[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (r *CommitRequest) check() error {
	if r.Ref != "" && !validRef(r.Ref) {
		return fmt.Errorf("bad ref name %q", r.Ref)
	}
	for i := range r.Snap.Entries {
		if e := &r.Snap.Entries[i]; e.ID.IsZero() && e.InTree() {
			return fmt.Errorf("commit: the content id of %q is not known", e.Path)
		}
	}
	return nil
}

// pointsAt reports whether a ref names a commit already; "" names every one that
// the next ref's commit leads to.
func (r *repository) pointsAt(ref, id string) bool {
	if ref == "" {
		return true
	}
	have, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(ref)))
	return err == nil && strings.TrimSpace(string(have)) == id
}

// writeCommits writes trees and commits as one pack.
func (s *Store) writeCommits(ctx context.Context, trees []*treeNode, ids []string, commits [][]byte, enc *packEncoder) error {
	p, err := s.newPack(filepath.Join(s.dir, "objects"), zlib.BestSpeed, len(trees)+len(commits))
	if err != nil {
		return err
	}
	err = p.addTrees(trees, enc)
	for i, data := range commits {
		id, perr := snapshot.ParseID(ids[i])
		err = errors.Join(err, perr)
		if err == nil {
			err = p.add(id, data)
		}
	}
	if err != nil {
		return errors.Join(err, p.abort())
	}
	return p.finish(ctx, true)
}

func commitData(tree snapshot.ID, opt CommitOptions) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	if opt.Parent != "" {
		fmt.Fprintf(&b, "parent %s\n", opt.Parent)
	}
	when := max(opt.When.Unix(), 0)
	const who = "superqode <superqode@localhost>"
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n%s\n", who, when, who, when, strings.TrimSuffix(opt.Message, "\n"))
	return b.Bytes()
}

// addTrees adds trees that were built.
func (p *packWriter) addTrees(trees []*treeNode, enc *packEncoder) error {
	var out []byte
	for _, t := range trees {
		var id snapshot.ID
		var err error
		if out, id, err = enc.encode(out[:0], treeObject, t.content); err != nil {
			return err
		}
		if err := p.add(id, out); err != nil {
			return err
		}
	}
	return nil
}

// fewTrees is up to how many trees are written without asking which exist: that
// takes longer.
const fewTrees = 128

// distinctTrees returns all trees below roots, or nil when they are more than
// most.
func distinctTrees(roots []*treeNode, most int) (all []*treeNode) {
	seen := map[snapshot.ID]bool{}
	for level := roots; len(level) > 0; {
		var next []*treeNode
		for _, n := range level {
			if seen[n.id] {
				continue
			}
			if seen[n.id] = true; len(seen) > most {
				return nil
			}
			all, next = append(all, n), append(next, n.subs...)
		}
		level = next
	}
	return all
}

// missingTrees returns the trees that are nowhere yet. It asks level by level
// and never below a tree that exists, for that one is whole, so an untouched
// checkout costs one question.
func (s *Store) missingTrees(ctx context.Context, roots []*treeNode) (missing []*treeNode, err error) {
	if few := distinctTrees(roots, fewTrees); few != nil {
		return few, nil
	}
	c, err := s.reader(ctx, "--batch-check")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	seen := map[snapshot.ID]bool{}
	for level := roots; len(level) > 0; {
		ids := make([]snapshot.ID, 0, len(level))
		for _, n := range level {
			ids = append(ids, n.id)
		}
		gone, err := c.missing(ids)
		if err != nil {
			return nil, err
		}
		var next []*treeNode
		for _, n := range level {
			// git knows the empty tree without having it, but fsck wants to see it.
			if seen[n.id] || !gone[n.id] && len(n.content) > 0 {
				continue
			}
			seen[n.id] = true
			missing = append(missing, n)
			next = append(next, n.subs...)
		}
		level = next
	}
	return missing, nil
}

// treeNode is one git tree object.
type treeNode struct {
	id      snapshot.ID
	content []byte
	subs    []*treeNode
}

// buildTree makes git's trees of the files and links in entries, bottom-up, and
// returns the root. Folders exist by what is in them only, as git has it.
//
// Entries are sorted by the bytes of their whole paths, and that is git's order
// within each tree too: a folder sorts as if its name ended in a slash. So one
// pass with a stack of open folders does.
func buildTree(f snapshot.Format, entries []snapshot.Entry) *treeNode {
	b := treeBuilder{format: f, stack: []openTree{{node: &treeNode{}}}}
	for i := range entries {
		if e := &entries[i]; e.InTree() {
			b.enter(string(e.Path))
			b.item(e)
		}
	}
	b.close(0)
	root := b.stack[0].node
	b.sum(root)
	return root
}

type treeBuilder struct {
	format snapshot.Format
	stack  []openTree // stack[0] is the root
}

type openTree struct {
	node   *treeNode
	prefix string // path with a slash at its end; "" for the root
}

// enter closes the folders that path is not in and opens those it is in.
func (b *treeBuilder) enter(path string) {
	n := len(b.stack) - 1
	for !strings.HasPrefix(path, b.stack[n].prefix) {
		n--
	}
	b.close(n)
	for {
		have := len(b.stack[len(b.stack)-1].prefix)
		i := strings.IndexByte(path[have:], '/')
		if i < 0 {
			return
		}
		b.stack = append(b.stack, openTree{&treeNode{}, path[:have+i+1]})
	}
}

// close ends the open trees above the n-th and puts each into its parent.
func (b *treeBuilder) close(n int) {
	for len(b.stack)-1 > n {
		top := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		up := b.stack[len(b.stack)-1]
		b.sum(top.node)
		up.node.add("40000", top.prefix[len(up.prefix):len(top.prefix)-1], top.node.id)
		up.node.subs = append(up.node.subs, top.node)
	}
}

func (b *treeBuilder) item(e *snapshot.Entry) {
	top := b.stack[len(b.stack)-1]
	top.node.add(gitMode(e), string(e.Path[len(top.prefix):]), e.ID)
}

func (b *treeBuilder) sum(n *treeNode) {
	h := b.format.NewHash()
	h.Write(append(strconv.AppendInt([]byte("tree "), int64(len(n.content)), 10), 0))
	h.Write(n.content)
	n.id = snapshot.IDFrom(h.Sum(nil))
}

func (n *treeNode) add(mode, name string, id snapshot.ID) {
	n.content = append(n.content, mode...)
	n.content = append(n.content, ' ')
	n.content = append(n.content, name...)
	n.content = append(n.content, 0)
	n.content = append(n.content, id.Bytes()...)
}

// gitMode is what git keeps of a mode: link, or whether the owner may execute.
func gitMode(e *snapshot.Entry) string {
	switch {
	case e.Kind == snapshot.Link:
		return "120000"
	case e.Perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}
