package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/coordinator"
)

// Outside of sessions the base of a file is what it held when lines of it were
// first claimed. That is kept in claims.base in the project's folder for as long
// as somebody has such a claim, so that lines which are added above later do not
// move a claim onto others.

// basePath is where the base of a file is kept.
func (c *Claims) basePath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(c.p.Dir, "claims.base", hex.EncodeToString(sum[:]))
}

// ofLines reports whether a target is lines of a file.
func ofLines(t coordinator.Target) bool {
	return t.Kind == coordinator.KindFile && t.Lines != (coordinator.Lines{})
}

// based returns the files of whose lines somebody outside of sessions has a claim.
func (c *Claims) based(ctx context.Context) (map[string]bool, error) {
	leases, _, err := c.Table.List(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for _, l := range leases {
		if l.Session.IsZero() && ofLines(l.Target) {
			files[l.Target.Path] = true
		}
	}
	return files, nil
}

// keepBase keeps what the files hold of which lines are about to be claimed, and
// forgets those of which nobody has a claim any more.
func (c *Claims) keepBase(ctx context.Context, targets []coordinator.Target) error {
	if c.s != nil || !slices.ContainsFunc(targets, ofLines) {
		return nil
	}
	files, err := c.based(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for path := range files {
		used[filepath.Base(c.basePath(path))] = true
	}
	dir := filepath.Join(c.p.Dir, "claims.base")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if !used[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	for _, t := range targets {
		if !ofLines(t) || files[t.Path] {
			continue
		}
		now, err := readWorkspaceFile(c.Root, t.Path)
		if err != nil {
			continue // not there, or no file: its lines are what they are called
		}
		if err := atomicfile.Replace(c.basePath(t.Path), now, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fromBase turns lines of a file as it is now into those of its base.
func (c *Claims) fromBase(ctx context.Context, path string, lines []coordinator.Lines) ([]coordinator.Lines, error) {
	files, err := c.based(ctx)
	if err != nil || !files[path] {
		return lines, err
	}
	base, err := atomicfile.Read(c.basePath(path))
	if errors.Is(err, os.ErrNotExist) {
		return lines, nil // there was no such file when it was claimed
	}
	if err != nil {
		return nil, err
	}
	now, err := readWorkspaceFile(c.Root, path)
	if err != nil {
		return lines, nil // not there any more, or no file
	}
	m := coordinator.NewLineMap(base, now)
	var out []coordinator.Lines
	for _, l := range lines {
		out = append(out, m.ToBase(l))
	}
	return out, nil
}
