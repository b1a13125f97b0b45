package treecopy

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// MaterializeOptions says how Materialize treats what is there.
type MaterializeOptions struct {
	// Replace lets files and links take the place of files and links, each by one
	// rename, and folders be used that exist. What a file replaces must have been
	// saved before. Without it every path must be free.
	Replace bool
	// Now is, with Replace, what dst was found to hold. What is in another state
	// when its turn comes is left as it is and named by the error, a *MovedError,
	// when all else is done. nil replaces whatever is there.
	Now *snapshot.Snapshot
	// HardLink finds, with Now, a file in dst of which e was another name, as it is
	// now; nil for none. Files of which snap itself has several names become so
	// again without it.
	HardLink func(e *snapshot.Entry) *snapshot.Entry
	// Aside is a folder that holds some of the files under their own paths; what
	// is not there comes from the store. "" is none.
	Aside string
	// Special makes special files too.
	Special bool
	// Partial goes on where what a file held is lost or damaged, and names it in
	// the problems.
	Partial bool
}

// Materialize writes the entries of snap, with contents from the store, into the
// directory dst, with their exact permission bits and mtimes and, for root, with
// their owners. Folders that are only implied are made too. A path that dst
// holds and snap does not is left alone.
//
// All is done by names within open folders, found from dst one name at a time:
// no link below dst is followed, not even one that stays inside (os.Root would
// follow that, into .git for example). Contents are checked against their ids
// while they are written. Special files that are not made are named in the
// problems with ErrSpecial.
func Materialize(
	ctx context.Context, snap *snapshot.Snapshot, st *store.Store, dst string, opt MaterializeOptions,
) (_ []snapshot.Problem, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	entries, err := withParents(snap.Entries)
	if err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	root, err := unix.Open(dst, dirfd.DirFlags&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("materialize: open %s: %w", dst, err)
	}
	m := &materializer{
		Cursor: dirfd.NewCursor(root), opt: opt, format: snap.Format, store: st, chown: os.Geteuid() == 0,
	}
	defer func() { err = errors.Join(err, m.Leave(), unix.Close(root)) }()
	defer func() { err = errors.Join(err, m.closeSources()) }()
	if err := m.openAside(); err != nil {
		return nil, fmt.Errorf("materialize: %w", err)
	}
	var moved MovedError
	for i := range entries {
		e := &entries[i]
		if ctx.Err() != nil {
			return m.problems, context.Cause(ctx)
		}
		if err := moved.collect(m.entry(ctx, e)); err != nil {
			return m.problems, fmt.Errorf("materialize %q: %w", e.Path, err)
		}
	}
	for i := len(entries) - 1; i >= 0; i-- { // what is in a folder sorts after it
		if e := &entries[i]; e.Kind == snapshot.Dir {
			if err := moved.collect(m.finishDir(e)); err != nil {
				return m.problems, fmt.Errorf("materialize %q: %w", e.Path, err)
			}
		}
	}
	return m.problems, moved.err()
}

type materializer struct {
	*dirfd.Cursor
	opt      MaterializeOptions
	format   snapshot.Format
	store    *store.Store
	chown    bool          // owners can be given
	contents *store.Reader // started when first needed
	aside    *dirfd.Cursor // nil for none
	problems []snapshot.Problem
	links    map[inode]hardLink // the files written for those that had several hard links
}

func (m *materializer) openAside() error {
	if m.opt.Aside == "" {
		return nil
	}
	root, err := dirfd.OpenRoot(m.opt.Aside)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	m.aside = dirfd.NewCursor(root)
	return err
}

func (m *materializer) closeSources() error {
	var err error
	if m.aside != nil {
		err = errors.Join(m.aside.Leave(), unix.Close(m.aside.Root))
	}
	if m.contents != nil {
		err = errors.Join(err, m.contents.Close())
	}
	return err
}

func (m *materializer) entry(ctx context.Context, e *snapshot.Entry) error {
	dir, name := dirfd.Split(e.Path)
	at, err := m.Enter(dir)
	if err != nil {
		return m.moved(err, e.Path)
	}
	switch e.Kind {
	case snapshot.Dir:
		return m.moved(m.dir(at, name), e.Path)
	case snapshot.File:
		err := m.put(at, name, e, func(name string) error { return m.file(ctx, at, name, e) })
		if lost, ok := errors.AsType[sourceError](err); ok {
			m.problems = append(m.problems, snapshot.Problem{Path: e.Path, Err: lost.error})
			return nil
		}
		if err == nil && m.hasLinks(e) {
			m.rememberLink(at, name, e)
		}
		return err
	case snapshot.Link:
		return m.put(at, name, e, func(name string) error {
			if err := unix.Symlinkat(e.Link, at, name); err != nil {
				return err
			}
			return errors.Join(m.own(at, name, e), dirfd.SetTimeAt(at, name, e.Stat.Mtime))
		})
	}
	err = ErrSpecial
	if m.opt.Special {
		err = m.put(at, name, e, func(name string) error {
			if err := makeSpecial(at, name, e); err != nil {
				return err
			}
			return errors.Join(m.own(at, name, e), unix.Fchmodat(at, name, e.Perm, 0),
				dirfd.SetTimeAt(at, name, e.Stat.Mtime))
		})
	}
	if errors.Is(err, ErrSpecial) || errors.Is(err, unix.EPERM) {
		m.problems = append(m.problems, snapshot.Problem{Path: e.Path, Err: err})
		err = nil
	}
	return err
}

// moved tells that a folder is not what it was, where dst was looked at before.
func (m *materializer) moved(err error, path superqode.RelPath) error {
	if m.opt.Now == nil {
		return err
	}
	return elsewhere(err, path)
}

// own gives an entry its owner.
func (m *materializer) own(at int, name string, e *snapshot.Entry) error {
	if !m.chown || e.Stat.UID|e.Stat.GID == 0 {
		return nil
	}
	return unix.Fchownat(at, name, int(e.Stat.UID), int(e.Stat.GID), unix.AT_SYMLINK_NOFOLLOW)
}

// dir makes a folder that can be written to for now.
func (m *materializer) dir(at int, name string) error {
	err := unix.Mkdirat(at, name, 0o700)
	if err != unix.EEXIST || !m.opt.Replace {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	if st.Mode&0o700 == 0o700 {
		return nil
	}
	return unix.Fchmodat(at, name, uint32(st.Mode)&0o7777|0o700, 0)
}

// put makes something by its name or, where it may replace, by another name that
// is then renamed: the old is there until the new is whole.
func (m *materializer) put(at int, name string, e *snapshot.Entry, fill func(name string) error) error {
	if !m.opt.Replace {
		return fill(name)
	}
	tmp := ".superqode-" + rand.Text()
	err := fill(tmp)
	if err == nil && m.opt.Now != nil {
		err = unmoved(at, name, e.Path, m.opt.Now.Find(e.Path))
	}
	if err == nil {
		failpoint.Hit("snapshot.written")
		err = unix.Renameat(at, tmp, at, name)
		failpoint.Hit("snapshot.replaced")
	}
	if err != nil || e.Stat.Nlink > 1 { // renaming one name of a file to another of it does nothing
		if uerr := unix.Unlinkat(at, tmp, 0); uerr != unix.ENOENT {
			err = errors.Join(err, uerr)
		}
	}
	return err
}

// unmoved returns a *MovedError when name in the folder at is not in the state
// that was, which is nil for nothing there.
func unmoved(at int, name string, path superqode.RelPath, was *snapshot.Entry) error {
	now, err := snapshot.StatAt(at, name)
	if err == unix.ENOENT && was == nil {
		return nil
	}
	if err == unix.ENOENT || err == nil && was == nil {
		return &MovedError{Path: path}
	}
	if err != nil {
		return err
	}
	same := was.Kind == now.Kind && was.Stat.Ino == now.Stat.Ino && was.Stat.Dev == now.Stat.Dev
	if same && now.Kind != snapshot.Dir {
		same = was.Size == now.Size && was.Stat.Mtime == now.Stat.Mtime &&
			(was.Stat.Ctime == now.Stat.Ctime || was.Stat.Nlink > 1 || now.Stat.Nlink > 1) // a hard link may have gone
	}
	if !same {
		return &MovedError{Path: path}
	}
	return nil
}

func (m *materializer) file(ctx context.Context, at int, name string, e *snapshot.Entry) error {
	if err := failpoint.Err("snapshot.write"); err != nil {
		return err
	}
	if m.hasLinks(e) && m.hardLink(at, name, e) {
		return nil
	}
	fd, err := dirfd.Open(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	err = m.fetch(ctx, e, f)
	if err == nil {
		err = m.own(at, name, e)
	}
	if err == nil {
		err = errors.Join(unix.Fchmod(fd, e.Perm), dirfd.SetTime(fd, unix.NsecToTimespec(e.Stat.Mtime)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(at, name, 0))
	}
	return nil
}

// finishDir gives a folder its mode and time, when nothing is made in it any
// more.
func (m *materializer) finishDir(e *snapshot.Entry) error {
	dir, name := dirfd.Split(e.Path)
	at, err := m.Enter(dir)
	if err != nil {
		return m.moved(err, e.Path)
	}
	fd, err := dirfd.Open(at, name, dirfd.DirFlags, 0)
	if err != nil {
		return m.moved(err, e.Path)
	}
	return errors.Join(m.own(at, name, e), unix.Fchmod(fd, e.Perm),
		dirfd.SetTime(fd, unix.NsecToTimespec(e.Stat.Mtime)), unix.Close(fd))
}

// copySparse copies a file into an empty one, its holes as holes, and writes all
// that it seems to hold to h. It returns the size.
func copySparse(ctx context.Context, in *os.File, out *watchedFile, h io.Writer) (size int64, err error) {
	st, err := in.Stat()
	if err != nil {
		return 0, err
	}
	size = st.Size()
	var zeros []byte
	for off := int64(0); off < size; {
		if ctx.Err() != nil {
			return off, context.Cause(ctx)
		}
		data, hole, err := nextData(int(in.Fd()), off, size)
		if err != nil || hole <= off { // not told here: all of it is data
			data, hole = off, size
		}
		if off < data && zeros == nil {
			zeros = make([]byte, 64<<10)
		}
		for ; off < data; off += min(int64(len(zeros)), data-off) {
			if _, err := h.Write(zeros[:min(int64(len(zeros)), data-off)]); err != nil {
				return off, err
			}
		}
		n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(out, data), h), io.NewSectionReader(in, data, hole-data))
		if off = data + n; err != nil || n < hole-data {
			return off, err
		}
	}
	return size, out.truncate(size)
}

// fetch writes an entry's contents to an empty file, from aside or from the
// store. With Partial a failure that is not the file's is a sourceError.
func (m *materializer) fetch(ctx context.Context, e *snapshot.Entry, f *os.File) error {
	to := &watchedFile{f: f}
	err := m.fetchTo(ctx, e, to)
	if err == nil || to.err != nil || !m.opt.Partial || ctx.Err() != nil {
		return err
	}
	if m.contents != nil {
		_ = m.contents.Close() // it may have died of the damage; the next file gets another
		m.contents = nil
	}
	return sourceError{err}
}

func (m *materializer) fetchTo(ctx context.Context, e *snapshot.Entry, to *watchedFile) (err error) {
	if found, err := m.fetchAside(ctx, e, to); found || err != nil {
		return err
	}
	if m.store == nil {
		return superqode.Errorf(superqode.ErrNotFound, "nothing was kept of %q", e.Path)
	}
	if m.contents == nil {
		if m.contents, err = m.store.OpenReader(ctx); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(to, 64<<10)
	return errors.Join(m.contents.Copy(e.ID, w), w.Flush())
}

// watchedFile remembers that a write to it failed.
type watchedFile struct {
	f   *os.File
	err error
}

func (w *watchedFile) Write(b []byte) (n int, err error) {
	if n, err = w.f.Write(b); err != nil {
		w.err = err
	}
	return n, err
}

// WriteAt is os.File.WriteAt.
func (w *watchedFile) WriteAt(b []byte, off int64) (n int, err error) {
	if n, err = w.f.WriteAt(b, off); err != nil {
		w.err = err
	}
	return n, err
}

func (w *watchedFile) truncate(size int64) error {
	err := w.f.Truncate(size)
	if err != nil {
		w.err = err
	}
	return err
}

func (m *materializer) fetchAside(ctx context.Context, e *snapshot.Entry, out *watchedFile) (found bool, err error) {
	if m.aside == nil {
		return false, nil
	}
	dir, name := dirfd.Split(e.Path)
	fd := -1
	at, err := m.aside.Enter(dir)
	if err == nil {
		fd, err = dirfd.Open(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil { // not there, or not to be read: the store may have it
		return false, nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	h := m.format.NewBlobHash(e.Size)
	n, err := copySparse(ctx, f, out, h)
	if err == nil && (n != e.Size || !e.ID.IsZero() && snapshot.IDFrom(h.Sum(nil)) != e.ID) {
		err = superqode.Errorf(superqode.ErrVerification, "what was kept of %q is damaged", e.Path)
	}
	return true, err
}

// inode names a file whatever its paths.
type inode struct{ dev, ino uint64 }

func inodeOf(e *snapshot.Entry) inode { return inode{e.Stat.Dev, e.Stat.Ino} }

// hardLink is a file to which Materialize may make further hard links.
type hardLink struct {
	path superqode.RelPath
	inode
}

// hasLinks reports whether e was one of several hard links and is to become one
// again.
func (m *materializer) hasLinks(e *snapshot.Entry) bool {
	return m.opt.Now != nil && e.Kind == snapshot.File && e.Stat.Nlink > 1
}

// hardLink links e to its former file if that exists under another name, or has
// been written. It reports whether it did; otherwise e becomes a file of its
// own.
func (m *materializer) hardLink(at int, name string, e *snapshot.Entry) bool {
	t, ok := m.links[inodeOf(e)]
	if !ok && m.opt.HardLink != nil {
		if now := m.opt.HardLink(e); now != nil {
			t, ok = hardLink{now.Path, inodeOf(now)}, true
		}
	}
	if !ok {
		return false
	}
	dir, from := dirfd.Split(t.path)
	up, err := dirfd.OpenPath(m.Root, string(dir), dirfd.DirFlags)
	if err != nil {
		return false
	}
	err = unix.Linkat(up, from, at, name, 0)
	_ = unix.Close(up) // a folder handle has nothing to flush
	if err != nil {
		return false
	}
	now, err := snapshot.StatAt(at, name)
	if err == nil && now.Kind == snapshot.File && inodeOf(&now) == t.inode && now.Size == e.Size {
		return true
	}
	_ = unix.Unlinkat(at, name, 0) // somebody put another file there meanwhile
	return false
}

// rememberLink records the file written for e, for its other hard links.
func (m *materializer) rememberLink(at int, name string, e *snapshot.Entry) {
	now, err := snapshot.StatAt(at, name)
	if err != nil {
		return
	}
	if m.links == nil {
		m.links = map[inode]hardLink{}
	}
	m.links[inodeOf(e)] = hardLink{e.Path, inodeOf(&now)}
}

// makeSpecial makes the special file that e describes, without its permission
// bits. Devices need root; a
// socket is only the name of one, for nobody listens there any more.
func makeSpecial(at int, name string, e *snapshot.Entry) error {
	mode, dev := uint32(0), uint64(0)
	var major, minor uint32
	switch {
	case e.Link == "fifo":
		mode = unix.S_IFIFO
	case e.Link == "socket":
		mode = unix.S_IFSOCK
	case scanned(e.Link, "char %d:%d", &major, &minor):
		mode, dev = unix.S_IFCHR, unix.Mkdev(major, minor)
	case scanned(e.Link, "block %d:%d", &major, &minor):
		mode, dev = unix.S_IFBLK, unix.Mkdev(major, minor)
	default:
		return ErrSpecial
	}
	return mknodat(at, name, mode|0o600, dev)
}

func scanned(s, format string, major, minor *uint32) bool {
	n, err := fmt.Sscanf(s, format, major, minor)
	return err == nil && n == 2
}
