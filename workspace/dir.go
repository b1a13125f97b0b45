package workspace

import (
	"bytes"
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
	return NewDir(root, abs), nil
}

// NewDir returns the Dir of an open root, which it closes. The path is what Root returns
// and what the targets of absolute links begin with; it is not looked at.
func NewDir(root *os.Root, path string) *Dir {
	d := &Dir{root: root, path: path, folds: foldsCase(path)}
	_, err := root.Lstat("..")
	d.escapes = reason(err)
	d.doer = d
	return d
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
	if len(c.frames) == 0 && c.op != opRename && c.op != opAtomic && !c.op.opens() {
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
	p, err := c.allowed(d.resolve)
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
		if err := p.tree(ctx, c, nil, d.look); err != nil {
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
	to, err := c.renames(ctx, p, info.IsDir(), d.resolve, d.look)
	if err != nil || to.target == p.target {
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

// look is a lister: a directory that was swapped for a link is errChanged.
func (d *Dir) look(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	w, err := d.pin(dir, call{op: opList})
	if err != nil || ctx.Err() != nil {
		return nil, cmp.Or(err, context.Cause(ctx))
	}
	defer d.unpin(w.dir)
	return d.list(w)
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
	if c.op == opList || c.op.opens() {
		parent, name = target, "."
	}
	dir := d.root
	for _, part := range components(parent) {
		sub, err := enter(dir, part, c.op.creates())
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
	case opExec, opClone, opPull:
		var f *os.File
		if f, err = w.dir.Open("."); err == nil {
			r.dir, err = again(f, path.Join(d.path, w.full))
		}
	case opStat, opExists:
		if !w.strict {
			r.info, err = w.dir.Stat(w.name)
		} else if r.info, err = w.dir.Lstat(w.name); err == nil && r.info.Mode().Type() == fs.ModeSymlink {
			err = errChanged
		} else if err == nil {
			r.info = renamed{r.info, path.Base(c.name)}
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

// open opens a regular file, and creates it if flag says so. A FIFO in its place does not
// block. At a strict place what is opened must be what was there before, or new: no link
// is followed.
func (w at) open(flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	var was fs.FileInfo
	var err error
	if w.strict && flag&os.O_EXCL == 0 {
		switch was, err = w.dir.Lstat(w.name); {
		case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
			was, flag = nil, flag|os.O_EXCL
		case err != nil:
			return nil, nil, err
		case was.Mode().Type() == fs.ModeSymlink:
			return nil, nil, errChanged
		default:
			flag &^= os.O_CREATE
		}
	}
	f, err := w.dir.OpenFile(w.name, flag|syscall.O_NONBLOCK, perm)
	switch {
	case errors.Is(err, syscall.ENXIO): // a FIFO that nobody reads
		return nil, nil, errSpecial
	case w.strict && errors.Is(err, fs.ErrExist):
		return nil, nil, errChanged
	case err != nil:
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

// read returns a file's content, also of one that grows meanwhile. What has no end, and
// what is large and holds nothing, would take all of this process's memory.
func (w at) read() ([]byte, fs.FileInfo, error) {
	f, info, err := w.open(os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > MaxRead {
		return nil, nil, syscall.EFBIG
	}
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if n, err := buf.ReadFrom(io.LimitReader(f, MaxRead+1)); n > MaxRead || err != nil {
		return nil, nil, cmp.Or(err, error(syscall.EFBIG))
	}
	return buf.Bytes(), info, nil
}

// write replaces a file's content, or adds to it. A strict place is emptied only when it
// is known what was opened.
func (w at) write(c call) error {
	flag := os.O_WRONLY | os.O_CREATE
	switch {
	case c.op == opAppend:
		flag |= os.O_APPEND
	case !w.strict:
		flag |= os.O_TRUNC
	}
	f, info, err := w.open(flag, cmp.Or(c.mode, 0o644))
	if err != nil {
		return err
	}
	if w.strict && c.op == opWrite && info.Size() > 0 {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.Write(c.data)
	}
	return errors.Join(err, f.Close())
}

// replace writes a file beside the one that it takes the place of, and waits until both
// content and name are on disk.
func (w at) replace(c call) error {
	perm, keep := cmp.Or(c.mode, 0o644), false
	info, err := w.dir.Lstat(w.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode().Type() == fs.ModeSymlink:
		return errChanged
	case !info.Mode().IsRegular():
		return errSpecial
	default:
		perm, keep = info.Mode().Perm(), true
	}
	tmp := at{dir: w.dir, name: tempName(w.name), strict: true}
	err = tmp.fill(c.data, perm, keep)
	if err == nil {
		err = w.dir.Rename(tmp.name, w.name)
	}
	if err != nil {
		if rerr := w.dir.Remove(tmp.name); !gone(rerr) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	names, err := w.dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(names.Sync(), names.Close())
}

// fill creates a file whose content is on disk.
func (w at) fill(data []byte, perm fs.FileMode, exactly bool) error {
	f, _, err := w.open(os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if exactly {
		err = f.Chmod(perm) // what the umask took
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// maxName keeps a temporary file's name below the 255 bytes that file systems allow.
const maxName = 200

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

// again is a second handle of an open file, under another name. It takes the first one's
// place.
func again(f *os.File, name string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// list reads a directory through a second handle: the os package asks for every file's
// facts, one by one, where the handle is an os.Root's.
func (d *Dir) list(w at) ([]fs.DirEntry, error) {
	f, err := w.dir.OpenFile(w.name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if f, err = again(f, w.full); err != nil {
		return nil, err
	}
	list, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
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
