package workspace

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
)

// Dir is a directory of this machine. No call leaves it, whatever other processes do
// to its links meanwhile: all goes through an os.Root. It is safe for concurrent use.
type Dir struct {
	methods
	root    *os.Root
	path    string
	escapes error // what os.Root says of a path that leaves it
	folds   bool
}

// Open opens a directory and makes it if it is missing. The links on the way to it are
// resolved now and never again: a link that is swapped later moves no workspace.
func Open(dir string) (*Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs + "/.") // a FIFO in its place would be waited for
	if err != nil {
		return nil, err
	}
	d := &Dir{root: root, path: abs, folds: foldsCase(abs)}
	_, err = root.Lstat("..")
	d.escapes = reason(err)
	d.doer = d
	return d, nil
}

// Root returns the directory's absolute path, free of links.
func (d *Dir) Root() string { return d.path }

// Close lets go of the directory; calls after it fail with fs.ErrClosed.
func (d *Dir) Close() error { return d.root.Close() }

// Capabilities implements CapabilityReporter.
func (d *Dir) Capabilities() Capabilities {
	return Capabilities{AtomicRename: true, Sync: true, Links: true, CaseSensitive: !d.folds}
}

// foldsCase reports whether the file system takes names of another case for the same.
func foldsCase(dir string) bool {
	other := strings.ToUpper(dir)
	if other == dir {
		other = strings.ToLower(dir)
	}
	a, err := os.Stat(dir)
	b, berr := os.Stat(other)
	return err == nil && berr == nil && dir != other && os.SameFile(a, b)
}

var (
	errChanged = errors.New("it was replaced while it was opened")
	errSpecial = errors.New("not a regular file")
)

// tries bounds how often a call begins anew because links were swapped under it.
const tries = 1000

// do runs a call on the path as it is, which the os.Root holds inside. Only where links
// have to be read (a view checks where a path leads, an absolute link) or parents are
// missing does it resolve the path, and then it follows no link any more.
func (d *Dir) do(ctx context.Context, c call) (reply, error) {
	c.folds = d.folds
	if len(c.frames) == 0 && c.op != opRename && c.op != opAtomic {
		r, err := d.act(c, at{dir: d.root, name: c.name, full: c.name})
		missing := errors.Is(err, fs.ErrNotExist) && (c.op == opWrite || c.op == opAppend)
		if !missing && !errors.Is(err, d.escapes) {
			return r, err
		}
	}
	for range tries {
		r, err := d.strictly(ctx, c)
		if !errors.Is(err, errChanged) && !errors.Is(err, d.escapes) {
			return r, err
		}
		if ctx.Err() != nil {
			return reply{}, context.Cause(ctx)
		}
	}
	return reply{}, ErrPathTraversal
}

// strictly resolves a call's paths, lets the scopes see where they lead, and acts there
// without following a link.
func (d *Dir) strictly(ctx context.Context, c call) (reply, error) {
	p, err := c.locate(c.name, d.resolve)
	if err == nil {
		err = p.check(c)
	}
	if err != nil {
		return reply{}, err
	}
	w, err := d.pin(p.target, c)
	if err != nil {
		return reply{}, err
	}
	defer d.unpin(w.dir)
	switch c.op {
	case opRename:
		return reply{}, d.rename(ctx, c, p, w)
	case opRemove:
		if err := d.each(ctx, w, p, func(p place) error { return p.check(c) }); err != nil {
			return reply{}, err
		}
	}
	r, err := d.act(c, w)
	r.entries = p.visible(c, r.entries) // nil but for a list
	return r, err
}

// rename moves what w names, and p is, to c.to.
func (d *Dir) rename(ctx context.Context, c call, p place, w at) error {
	info, err := w.dir.Lstat(w.name)
	if err != nil {
		return err
	}
	to, err := c.locate(c.to, d.resolve)
	if err == nil {
		err = to.check(c)
	}
	switch {
	case err != nil:
		return err
	case p.target == to.target:
		return nil
	case superqode.Within(to.target, p.target) && info.IsDir():
		return syscall.EINVAL
	}
	err = d.each(ctx, w, p, func(below place) error {
		return cmp.Or(below.check(c), to.join(rel(below.target, p.target)).check(c))
	})
	if err != nil {
		return err
	}
	c.name, c.op = c.to, opWrite
	v, err := d.pin(to.target, c)
	if err != nil {
		return err
	}
	defer d.unpin(v.dir)
	if there, err := v.dir.Lstat(v.name); err == nil && there.IsDir() && !info.IsDir() {
		return syscall.EISDIR
	}
	if err = d.move(w, v); errors.Is(err, syscall.EEXIST) {
		err = syscall.ENOTEMPTY
	}
	return err
}

// each visits what lies below a place, where a scope wants to know.
func (d *Dir) each(ctx context.Context, w at, p place, visit func(place) error) error {
	if len(p.scopes) == 0 {
		return nil
	}
	dir, err := enter(w.dir, w.name, false)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged) {
		return nil // a file, nothing, a link: it holds nothing
	} else if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := d.list(at{dir: dir, name: ".", full: p.target})
	for _, e := range entries {
		below := p.join(e.Name())
		err = cmp.Or(err, context.Cause(ctx), visit(below))
		if err == nil && e.IsDir() {
			err = d.each(ctx, at{dir: dir, name: e.Name(), strict: true}, below, visit)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// resolve returns a path without links: below the root, or ErrPathTraversal. What is
// missing is taken as it is written.
func (d *Dir) resolve(name string, last bool) (string, error) {
	done, rest := ".", components(name)
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			if done == "." {
				return "", ErrPathTraversal
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := d.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.Contains(rest, ".."):
			return path.Join(next, path.Join(rest...)), nil
		case err != nil:
			return "", err
		case info.Mode().Type() != fs.ModeSymlink || len(rest) == 0 && !last:
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := d.root.Readlink(next)
		if errors.Is(err, syscall.EINVAL) {
			return "", errChanged
		} else if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			inside, ok := strings.CutPrefix(path.Clean(target)+"/", strings.TrimSuffix(d.path, "/")+"/")
			if !ok {
				return "", ErrPathTraversal
			}
			done, target = ".", inside
		}
		rest = slices.Concat(components(target), rest)
	}
	return done, nil
}

// maxLinks is how many links a path may lead over, as in Linux.
const maxLinks = 40

// components splits a path; "." has none.
func components(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

// at is a name in an open directory. A strict one is a single component that was
// resolved, so that it is no link; the os.Root follows the others.
type at struct {
	dir    *os.Root
	name   string
	full   string // from the root
	strict bool
}

// pin opens the directory that holds a path without links (the path itself, for a list),
// one component after the other, and compares what it opened with what it saw. A writing
// call makes what is missing.
func (d *Dir) pin(target string, c call) (at, error) {
	parent, name := path.Dir(target), path.Base(target)
	if c.op == opList {
		parent, name = target, "."
	}
	dir := d.root
	for _, part := range components(parent) {
		sub, err := enter(dir, part, c.op == opWrite || c.op == opAppend || c.op == opAtomic)
		d.unpin(dir)
		if err != nil {
			return at{}, err
		}
		dir = sub
	}
	return at{dir: dir, name: name, full: target, strict: true}, nil
}

func (d *Dir) unpin(dir *os.Root) {
	if dir != d.root {
		_ = dir.Close() // a directory's handle has nothing to flush
	}
}

// enter opens a directory in another one, and no link.
func enter(dir *os.Root, name string, create bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = dir.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = dir.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, errChanged
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	sub, err := dir.OpenRoot(name + "/.")
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged
	} else if err != nil {
		return nil, err
	}
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return nil, cmp.Or(errors.Join(err, sub.Close()), errChanged)
	}
	return sub, nil
}

// act does what a call asks for, at one place.
func (d *Dir) act(c call, w at) (r reply, err error) {
	switch c.op {
	case opRead:
		r.data, r.info, err = w.read()
	case opWrite, opAppend:
		err = w.write(c)
	case opAtomic:
		err = w.replace(c)
	case opList:
		r.entries, err = d.list(w)
	case opStat, opExists:
		if !w.strict {
			r.info, err = w.dir.Stat(w.name)
		} else if r.info, err = w.dir.Lstat(w.name); err == nil {
			r.info = renamed{r.info, path.Base(c.name)}
			err = w.noLink(r.info)
		}
	case opRemove:
		err = w.dir.RemoveAll(w.name)
	case opDelete:
		var info fs.FileInfo
		if info, err = w.dir.Lstat(w.name); err == nil && info.IsDir() {
			err = syscall.EISDIR
		}
		if err == nil {
			err = w.dir.Remove(w.name)
		}
	}
	return r, err
}

// renamed is what Stat says of a resolved path: the name that was asked for.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

// noLink is errChanged where a link has taken the place of what was resolved.
func (w at) noLink(info fs.FileInfo) error {
	if w.strict && info.Mode().Type() == fs.ModeSymlink {
		return errChanged
	}
	return nil
}

// open opens a regular file. A FIFO in its place does not block. At a strict place what
// is opened must be what was there before, so that no link is followed.
func (w at) open(flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	var was fs.FileInfo
	if w.strict && flag&os.O_EXCL == 0 {
		var err error
		if was, err = w.dir.Lstat(w.name); err == nil {
			err = w.noLink(was)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	f, err := w.dir.OpenFile(w.name, flag|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ENXIO) { // a FIFO that nobody reads
		err = errSpecial
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case was != nil && !os.SameFile(was, info):
		err = errChanged
	case info.IsDir():
		err = syscall.EISDIR
	case !info.Mode().IsRegular():
		err = errSpecial
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func (w at) read() ([]byte, fs.FileInfo, error) {
	f, info, err := w.open(os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data := make([]byte, 0, info.Size()+1) // one more than the content, so that its end is seen at once
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, info, nil
		case err != nil:
			return nil, nil, err
		case len(data) == cap(data):
			data = slices.Grow(data, len(data))
		}
	}
}

// write replaces a file's content, or adds to it.
func (w at) write(c call) error {
	perm := cmp.Or(c.mode, 0o644)
	var f *os.File
	var err error
	switch {
	case c.op == opAppend:
		f, _, err = w.openOrCreate(os.O_WRONLY|os.O_APPEND, perm)
	case w.strict:
		if f, _, err = w.openOrCreate(os.O_WRONLY, perm); err == nil {
			if err = f.Truncate(0); err != nil {
				return errors.Join(err, f.Close())
			}
		}
	default:
		f, _, err = w.open(os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(c.data)
	return errors.Join(err, f.Close())
}

func (w at) openOrCreate(flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	if !w.strict {
		return w.open(flag|os.O_CREATE, perm)
	}
	f, info, err := w.open(flag, perm)
	if errors.Is(err, fs.ErrNotExist) {
		f, info, err = w.open(flag|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) {
			err = errChanged
		}
	}
	return f, info, err
}

// replace writes a file beside the one that it takes the place of, and waits until both
// content and name are on disk.
func (w at) replace(c call) (err error) {
	perm, keep := cmp.Or(c.mode, 0o644), false
	info, err := w.dir.Lstat(w.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case w.noLink(info) != nil:
		return errChanged
	case !info.Mode().IsRegular():
		return errSpecial
	default:
		perm, keep = info.Mode().Perm(), true
	}
	tmp := at{dir: w.dir, name: tempName(w.name), strict: true}
	f, _, err := tmp.open(os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.dir.Remove(tmp.name))
		}
	}()
	if keep {
		err = f.Chmod(perm) // what the umask took
	}
	if err == nil {
		_, err = f.Write(c.data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = w.dir.Rename(tmp.name, w.name); err != nil {
		return err
	}
	return syncNames(w.dir)
}

// maxName keeps a temporary file's name below the 255 bytes that file systems allow.
const maxName = 200

// syncNames waits until a directory's names are on disk. The file has its new content
// whatever comes of it.
func syncNames(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// listing is what the entries of one List have in common.
type listing struct {
	d   *Dir
	dir string
}

// entry is a name with what the directory knows of it; the rest is looked up below the
// root when it is asked for.
type entry struct {
	fs.DirEntry
	in *listing
}

// Info implements fs.DirEntry.
func (e *entry) Info() (fs.FileInfo, error) {
	name := path.Join(e.in.dir, e.Name())
	info, err := e.in.d.root.Lstat(name)
	if errors.Is(err, e.in.d.escapes) {
		if name, err = e.in.d.resolve(name, false); err == nil {
			info, err = e.in.d.root.Lstat(name)
		}
	}
	return info, err
}

// list reads a directory through a second handle: the os package asks for every file's
// facts, one by one, where the handle is an os.Root's.
func (d *Dir) list(w at) ([]fs.DirEntry, error) {
	f, err := w.dir.OpenFile(w.name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	second := os.NewFile(uintptr(fd), w.full)
	list, err := second.ReadDir(-1)
	if err = errors.Join(err, second.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	in, entries := &listing{d, w.full}, make([]entry, len(list))
	for i, e := range list {
		entries[i] = entry{e, in}
		list[i] = &entries[i]
	}
	return list, nil
}
