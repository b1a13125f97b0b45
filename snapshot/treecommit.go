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

// Commit makes a commit of s, points ref (refs/superqode/<session>/<name>) at it
// and returns its id. The contents must be in the store or in the origin already
// and every id known. Empty folders, special files and what git refuses to hold
// (paths through .git) are left out; of the permission bits git keeps the
// owner's x. The same snapshot and options give the same commit.
//
// Only trees that neither store nor origin has are written, as one synced pack.
func (s *Store) Commit(ctx context.Context, ref string, snap *Snapshot, opt CommitOptions) (_ string, err error) {
	if !validRef(ref) {
		return "", fmt.Errorf("bad ref name %q", ref)
	}
	for i := range snap.Entries {
		if e := &snap.Entries[i]; e.ID.IsZero() && e.InTree() {
			return "", fmt.Errorf("commit: the content id of %q is not known", e.Path)
		}
	}
	unlock, err := s.share(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	root := buildTree(s.format, snap.Entries)
	data := commitData(root.id, opt)
	enc := packEncoder{format: s.format, level: zlib.BestSpeed}
	encoded, id, err := enc.encode(nil, commitObject, data)
	if err != nil {
		return "", err
	}
	if have, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(ref))); err == nil && strings.TrimSpace(string(have)) == id.String() {
		return id.String(), nil // done before
	}
	fresh, err := s.missingTrees(ctx, root)
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	p, err := s.newPack(filepath.Join(s.dir, "objects"), zlib.BestSpeed, len(fresh)+1)
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	if err := errors.Join(p.addTrees(fresh, &enc), p.add(id, encoded)); err != nil {
		return "", fmt.Errorf("commit: %w", errors.Join(err, p.abort()))
	}
	if err := p.finish(ctx, true); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	return id.String(), s.writeRef(ref, id.String())
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

// missingTrees returns the trees that are nowhere yet. It asks level by level
// and never below a tree that exists, for that one is whole, so an untouched
// checkout costs one question.
func (s *Store) missingTrees(ctx context.Context, root *treeNode) (missing []*treeNode, err error) {
	c, err := s.catFile(ctx, "--batch-check")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	seen := map[ID]bool{}
	for level := []*treeNode{root}; len(level) > 0; {
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
