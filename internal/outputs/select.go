package outputs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// selector does the work of one Select.
type selector struct {
	opt Options
	sel *Selection

	name     string // of the folder at work
	dir      *os.Root
	patterns []*pattern
	found    []string
	seen     map[string]bool
}

// root searches one folder.
func (s *selector) root(ctx context.Context, name, dir string, patterns []*pattern) error {
	root, err := atomicfile.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	s.name, s.dir, s.patterns, s.found, s.seen = name, root, patterns, nil, map[string]bool{}
	for _, base := range bases(patterns) {
		if err := s.walk(ctx, base); err != nil {
			return err
		}
	}
	slices.Sort(s.found)
	return s.take(ctx, slices.Compact(s.found))
}

// bases are the folders to search, none below another.
func bases(patterns []*pattern) []string {
	var list []string
	for _, p := range patterns {
		list = append(list, p.Base())
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(slices.Clone(list), func(b string) bool {
		return slices.ContainsFunc(list, func(a string) bool {
			return a != b && (a == "." || strings.HasPrefix(b, a+"/"))
		})
	})
}

// walk collects the files below rel that a pattern matches. It does not follow
// links to folders, so it ends; a person gave the name of a base.
func (s *selector) walk(ctx context.Context, rel string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	st, err := s.dir.Stat(filepath.FromSlash(rel))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || s.isLink(rel) {
			s.visit(rel, fs.ModeSymlink)
		}
		return nil
	}
	if !st.IsDir() {
		s.visit(rel, st.Mode().Type())
		return nil
	}
	f, err := s.dir.Open(filepath.FromSlash(rel))
	if err != nil {
		s.skip(rel, "the folder cannot be read: "+reason(err))
		return nil
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close() // read only
	if err != nil {
		s.skip(rel, "the folder cannot be read: "+reason(err))
	}
	for _, e := range entries {
		sub := path.Join(rel, e.Name())
		switch {
		case e.Name() == ".git" && !slices.ContainsFunc(s.patterns, func(p *pattern) bool { return p.Names(".git") }):
		case e.IsDir():
			if err := s.walk(ctx, sub); err != nil {
				return err
			}
		default:
			s.visit(sub, e.Type())
		}
	}
	return nil
}

func (s *selector) isLink(rel string) bool {
	st, err := s.dir.Lstat(filepath.FromSlash(rel))
	return err == nil && st.Mode().Type() == fs.ModeSymlink
}

// visit adds one file if a pattern matches.
func (s *selector) visit(rel string, kind fs.FileMode) {
	asked := false
	for _, p := range s.patterns {
		if p.Match(rel) {
			p.seen, asked = true, true
		}
	}
	if !asked || s.seen[rel] {
		return
	}
	s.seen[rel] = true
	switch {
	case kind == fs.ModeSymlink:
		if why := s.badLink(rel); why != "" {
			s.skip(rel, why)
			return
		}
	case kind != 0:
		s.skip(rel, "it is "+kindWord(kind))
		return
	}
	s.found = append(s.found, rel)
}

// badLink says why Select does not follow a link, or "".
func (s *selector) badLink(rel string) string {
	st, err := s.dir.Stat(filepath.FromSlash(rel))
	target, _ := s.dir.Readlink(filepath.FromSlash(rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is a link that leads nowhere"
	case errors.Is(err, syscall.ELOOP):
		return "it is a link that leads in a circle"
	case err != nil && filepath.IsAbs(target):
		return "it is a link to an absolute path, which may lead out"
	case err != nil:
		return "it is a link that leads out: " + reason(err)
	case st.IsDir():
		return "it is a link to a folder"
	case !st.Mode().IsRegular():
		return "it is a link to " + kindWord(st.Mode().Type())
	}
	return ""
}

func kindWord(kind fs.FileMode) string {
	switch {
	case kind&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	case kind&fs.ModeDevice != 0:
		return "a device"
	case kind&fs.ModeDir != 0:
		return "a folder"
	}
	return "not a regular file"
}

func (s *selector) skip(rel, why string) {
	s.sel.SkippedCount++
	if len(s.sel.Skipped) < maxSkipped {
		s.sel.Skipped = append(s.sel.Skipped, Skipped{s.name, rel, why})
	}
}

// cut records that a limit kept a file out.
func (s *selector) cut(size int64, why string) {
	if s.sel.Cut == nil {
		s.sel.Cut = &Cut{Reasons: []string{}}
	}
	c := s.sel.Cut
	c.Files++
	c.Bytes += size
	if !slices.Contains(c.Reasons, why) {
		c.Reasons = append(c.Reasons, why)
	}
}

// take hashes the found files as far as the limits allow. Their sizes, in
// order, decide which fit; then several goroutines read them.
func (s *selector) take(ctx context.Context, found []string) error {
	var list []File
	total := s.sel.Bytes
	for _, rel := range found {
		st, err := s.dir.Stat(filepath.FromSlash(rel))
		if err != nil {
			s.skip(rel, "it cannot be read: "+reason(err))
			continue
		}
		switch size := st.Size(); {
		case size > s.opt.MaxFileBytes:
			s.skip(rel, fmt.Sprintf("it has %s, more than the %s of --max-file-bytes", text.Size(size), text.Size(s.opt.MaxFileBytes)))
			s.cut(size, fmt.Sprintf("files above %s (--max-file-bytes)", text.Size(s.opt.MaxFileBytes)))
		case len(s.sel.Files)+len(list) >= s.opt.MaxFiles:
			s.cut(size, fmt.Sprintf("files after the first %d (--max-files)", s.opt.MaxFiles))
		case total+size > s.opt.MaxTotalBytes:
			s.skip(rel, fmt.Sprintf("with its %s all would have more than the %s of --max-total-bytes",
				text.Size(size), text.Size(s.opt.MaxTotalBytes)))
			s.cut(size, fmt.Sprintf("files beyond %s in all (--max-total-bytes)", text.Size(s.opt.MaxTotalBytes)))
		default:
			total += size
			list = append(list, File{Root: s.name, Path: rel, Size: size})
		}
	}
	failed := make([]error, len(list))
	g, gctx := errgroup.WithContext(ctx)
	const parts = 2
	for part := range parts {
		g.Go(func() error {
			buf := make([]byte, 128<<10)
			for i := part; i < len(list) && gctx.Err() == nil; i += parts {
				failed[i] = s.read(&list[i], buf)
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, f := range list {
		if failed[i] != nil {
			s.skip(f.Path, "it cannot be read: "+reason(failed[i]))
			continue
		}
		s.sel.Files = append(s.sel.Files, f)
		s.sel.Bytes += f.Size
	}
	slices.SortFunc(s.sel.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path))
	})
	return nil
}

// read hashes one file. It may grow while it is read: then it is too large, not
// cut.
func (s *selector) read(f *File, buf []byte) error {
	file, st, err := openRegular(s.dir, filepath.FromSlash(f.Path))
	if err != nil {
		return err
	}
	defer file.Close() // read only
	f.Mode = st.Mode()
	h := sha256.New()
	size := int64(0)
	for {
		n, err := file.Read(buf)
		h.Write(buf[:n])
		if s.opt.Inline {
			f.Data = append(f.Data, buf[:n]...)
		}
		if size += int64(n); size > max(f.Size, s.opt.MaxFileBytes) {
			return errors.New("it grew while it was read")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	f.Size, f.SHA256 = size, hex.EncodeToString(h.Sum(nil))
	return nil
}

// openRegular opens a regular file; a named pipe that took its place meanwhile
// does not block it.
func openRegular(root *os.Root, rel string) (*os.File, os.FileInfo, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is " + kindWord(st.Mode().Type()))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, st, nil
}
