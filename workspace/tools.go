package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/seed-2d964004/superqode"
)

// Capabilities say what an FS holds. The zero value promises nothing.
type Capabilities struct {
	AtomicRename  bool // a reader sees the old file or the new one
	Sync          bool // AtomicWrite survives a power cut
	Links         bool // there may be symbolic links
	CaseSensitive bool // "A" and "a" are two names
}

// A CapabilityReporter is an FS that knows its capabilities.
type CapabilityReporter interface{ Capabilities() Capabilities }

// CapabilitiesOf asks f, and a view what lies below it; one that cannot tell has none.
func CapabilitiesOf(f FS) Capabilities {
	var from any = f
	if m, ok := f.(methods); ok {
		from = m.doer
	}
	if r, ok := from.(CapabilityReporter); ok {
		return r.Capabilities()
	}
	return Capabilities{}
}

// AtomicWrite replaces a file so that a reader, and a machine that comes back after a
// power cut, finds the old content or the new one: a temporary file beside it (".NAME.tmp-"
// and random letters, O_EXCL), flushed, renamed, and the directory flushed. The mode is
// kept; of a link, the file that it leads to is replaced. What CapabilitiesOf(f) does not
// promise does not hold either.
func AtomicWrite(ctx context.Context, f FS, name string, data []byte) error {
	_, err := methods{doerOf(f)}.run(ctx, call{op: opAtomic, name: name, data: data})
	return err
}

// Copy copies a regular file within f, and gives a new one the mode of the old one.
func Copy(ctx context.Context, f FS, src, dst string) error {
	m := methods{doerOf(f)}
	r, err := m.run(ctx, call{op: opRead, name: src})
	if err != nil {
		return err
	}
	c := call{op: opWrite, name: dst, data: r.data}
	if r.info != nil {
		c.mode = r.info.Mode().Perm()
	}
	_, err = m.run(ctx, c)
	return err
}

// A WalkFunc is called with a path from the FS's root. fs.SkipDir as its error leaves out
// the directory that it was called with, or what remains of the file's; fs.SkipAll ends
// the walk without an error; any other error ends it.
type WalkFunc func(name string, entry fs.DirEntry) error

// Walk visits everything below a directory, a directory before what it holds, in the order
// of names. Links are visited and not followed. What disappears meanwhile is left out.
func Walk(ctx context.Context, f FS, dir string, visit WalkFunc) error {
	dir, err := clean(dir)
	if err == nil {
		err = walk(ctx, f, dir, visit)
	}
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

func walk(ctx context.Context, f FS, dir string, visit WalkFunc) error {
	list, err := f.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		err := visit(name, e)
		if err == nil && e.IsDir() {
			if err = walk(ctx, f, name, visit); gone(err) {
				err = nil
			}
		} else if e.IsDir() && errors.Is(err, fs.SkipDir) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Glob returns the regular files that a pattern matches, links to them included, sorted.
// The dialect is that of output patterns: "*" stays within a folder, "**" does not,
// "{a,b}" are alternatives, and a folder's plain name, or a pattern that ends in "/",
// stands for all files below. ".git" is left out unless the pattern names it. A pattern
// that cannot be read, is empty, absolute or holds ".." is superqode.ErrUsage.
func Glob(ctx context.Context, f FS, text string) ([]string, error) {
	p, err := parsePattern(text)
	if err != nil {
		return nil, err
	}
	m := methods{doerOf(f)}
	base, git := p.Base(), p.Names(".git")
	found := []string{}
	take := func(name string, kind fs.FileMode) error {
		if !p.Match(name) || kind != 0 && kind != fs.ModeSymlink {
			return nil
		}
		if kind == fs.ModeSymlink {
			r, err := m.run(ctx, call{op: opStat, name: name, mute: true})
			if err != nil || !r.info.Mode().IsRegular() {
				return context.Cause(ctx)
			}
		}
		found = append(found, name)
		return nil
	}
	err = Walk(ctx, f, base, func(name string, e fs.DirEntry) error {
		if !e.IsDir() {
			return take(name, e.Type())
		}
		if e.Name() == ".git" && !git || !p.Below(name) {
			return fs.SkipDir
		}
		return nil
	})
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		var info fs.FileInfo
		if info, err = f.Stat(ctx, base); err == nil {
			err = take(base, info.Mode().Type())
		} else if errors.Is(err, superqode.ErrNotFound) {
			err = nil
		}
	case errors.Is(err, superqode.ErrNotFound), errors.Is(err, ErrAccessDenied):
		err = nil // nothing is there to match, or it is hidden
	}
	slices.Sort(found)
	return found, err
}

type contextKey struct{}

// WithContext returns a context that carries f.
func WithContext(ctx context.Context, f FS) context.Context {
	return context.WithValue(ctx, contextKey{}, f)
}

// FromContext returns the FS that WithContext put into a context.
func FromContext(ctx context.Context) (FS, bool) {
	f, ok := ctx.Value(contextKey{}).(FS)
	return f, ok
}
