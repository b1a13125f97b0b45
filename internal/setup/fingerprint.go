package setup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/config"
)

// A fingerprint is a SHA-256 over fields, each written as its length and its
// bytes, in groups that begin with their number of fields, so that no two lists
// of groups give the same bytes.
type framed struct{ h hash.Hash }

func newFramed() framed { return framed{sha256.New()} }

func (f framed) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	_, _ = f.h.Write(b[:]) // a hash never fails
}

func (f framed) text(s string) {
	f.number(uint64(len(s)))
	_, _ = io.WriteString(f.h, s)
}

// group adds named fields.
func (f framed) group(name string, fields ...string) {
	f.text(name)
	f.number(uint64(len(fields)))
	for _, s := range fields {
		f.text(s)
	}
}

func (f framed) sum() string { return hex.EncodeToString(f.h.Sum(nil)) }

// definition is the fingerprint of what a command's entry says. The time limit
// and whether it is optional are not part of it: they do not change what the
// command does.
func (c *command) definition() string {
	f := newFramed()
	f.group("run", c.Command, fmt.Sprint(c.Shell))
	f.group("args", c.Args...)
	var env []string
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, k, c.Env[k])
	}
	f.group("env", env...)
	f.group("cwd", c.Dir)
	f.group("salt", c.Salt)
	f.group("inputs", c.FingerprintInputs...)
	f.group("observed", c.Observed...)
	f.group("marker", c.Marker)
	return f.sum()
}

// maxScript bounds the size of a program or script whose contents count.
const maxScript = 64 << 20

// outside is the fingerprint of what a command reads outside the workspace: the
// scripts that it names by their paths, and inputs.
func (c *command) outside(ctx context.Context) (string, error) {
	f := newFramed()
	for _, word := range (config.Command{Run: &c.SetupRun}).Words() {
		if st, err := os.Stat(word); !filepath.IsAbs(word) || err != nil || !st.Mode().IsRegular() ||
			st.Size() > maxScript || !config.IsScript(word, st) {
			continue
		}
		real, err := filepath.EvalSymlinks(word) // /bin/sh is a link, and Hash follows none
		if err != nil {
			return "", err
		}
		sum, err := atomicfile.Hash(real)
		if err != nil {
			return "", err
		}
		f.group("script", word, hex.EncodeToString(sum[:]))
	}
	for _, pattern := range c.FingerprintInputs {
		if !filepath.IsAbs(pattern) {
			continue
		}
		base, rest := doublestar.SplitPattern(pattern)
		root, err := atomicfile.OpenRoot(base)
		if errors.Is(err, fs.ErrNotExist) {
			f.group("missing", pattern)
			continue
		}
		if err != nil {
			return "", err
		}
		sum, _, err := digest(ctx, root, []string{rest})
		if err = errors.Join(err, root.Close()); err != nil {
			return "", err
		}
		f.group("input", pattern, sum)
	}
	return f.sum(), nil
}

// inside is the fingerprint of what a command reads in the workspace.
func (c *command) inside(ctx context.Context, root *os.Root) (string, error) {
	var patterns []string
	for _, p := range c.FingerprintInputs {
		if !filepath.IsAbs(p) {
			patterns = append(patterns, p)
		}
	}
	sum, _, err := digest(ctx, root, patterns)
	return sum, err
}

// digest returns the fingerprint of everything below root that matches, or is
// in a folder that matches, and the number of paths. Links are not followed.
func digest(ctx context.Context, root *os.Root, patterns []string) (sum string, matches int, err error) {
	f := newFramed()
	fsys := root.FS()
	for _, pattern := range patterns {
		pattern = path.Clean(pattern)
		f.group("pattern", pattern)
		var names []string
		for _, p := range []string{pattern, pattern + "/**"} {
			err := doublestar.GlobWalk(fsys, p, func(name string, d fs.DirEntry) error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if name != "." && !inGit(name) {
					names = append(names, name)
				}
				return nil
			}, doublestar.WithNoFollow())
			if err != nil {
				return "", 0, err
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			fields, err := describe(root, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", 0, err
			}
			matches++
			f.group("path", append([]string{name}, fields...)...)
		}
	}
	return f.sum(), matches, nil
}

// describe says what one path is.
func describe(root *os.Root, name string) ([]string, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	mode := fmt.Sprintf("%o", st.Mode().Perm())
	switch {
	case st.Mode().IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		sum, err := hashReader(f)
		return []string{"file", mode, sum}, errors.Join(err, f.Close())
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return []string{"link", target}, err
	case st.IsDir():
		return []string{"folder", mode}, nil
	}
	return []string{"other", mode}, nil
}

// inGit reports whether a path leads through a git folder.
func inGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

func hashReader(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}
