package snapshot

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// CommitOptions describes a commit of a snapshot.
type CommitOptions struct {
	Parent  string    // commit id, "" for none
	Message string    // a newline is added at its end if it has none
	When    time.Time // author's and committer's date, whole seconds, in UTC
}

// CommitRequest is one commit of several that are made together.
type CommitRequest struct {
	Ref  string // refs/superqode/<session>/<name>; "" for one that only a later commit of the list leads to
	Snap *Snapshot
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
func (s *Store) Commit(ctx context.Context, ref string, snap *Snapshot, opt CommitOptions) (string, error) {
	ids, err := s.CommitAll(ctx, []CommitRequest{{Ref: ref, Snap: snap, CommitOptions: opt}})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// CommitAll is Commit for several, which costs little more than one. The refs are
// written in the order of the list, after all objects.
func (s *Store) CommitAll(ctx context.Context, list []CommitRequest) (ids []string, err error) {
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
func (s *Store) pointsAt(ref, id string) bool {
	if ref == "" {
		return true
	}
	have, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(ref)))
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
		id, perr := ParseID(ids[i])
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

func commitData(tree ID, opt CommitOptions) []byte {
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
		var id ID
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
	seen := map[ID]bool{}
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
	c, err := s.catFile(ctx, "--batch-check")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	seen := map[ID]bool{}
	for level := roots; len(level) > 0; {
		ids := make([]ID, 0, len(level))
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
