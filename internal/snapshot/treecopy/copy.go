// Package treecopy copies a tree, writes a snapshot out, and deletes, adjusts or
// moves what a snapshot says. All work is relative to open folders and follows no
// link; what is no more in the state in which it was looked at is left alone.
package treecopy

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// ErrSpecial is the reason given for sockets, FIFOs and devices: they are
// recorded in a snapshot and never copied or written out.
var ErrSpecial = errors.New("a socket, FIFO or device is not copied")

// CopyOptions says how Copy works.
type CopyOptions struct {
	Workers  int  // goroutines; 0 means one more than there are processors, at most 4
	Existing bool // folders that dst holds are used; without it every path must be free
	Meter    *Meter
	Unread   bool // ids are those that src has: a hash would have to read the holes, too
}

// Meter tells another goroutine how far a Copy has come, in entries. A nil Meter
// counts nothing.
type Meter struct{ total, done atomic.Int64 }

// Count returns how many entries are done and how many there are, 0 while that is
// not known.
func (m *Meter) Count() (done, total int64) { return m.done.Load(), m.total.Load() }

func (m *Meter) expect(n int) {
	if m != nil {
		m.total.Store(int64(n))
	}
}

func (m *Meter) add(n int) {
	if m != nil {
		m.done.Add(int64(n))
	}
}

// copyTick is how far file system clocks may lag behind the real one: a file
// changed within a tick before a scan may change again without its times moving.
const copyTick = 10 * time.Millisecond

// copyChunk is how many files of one folder one goroutine takes at a time.
const copyChunk = 512

// Copy writes the entries of src, with contents read below src.Root, into the
// directory dst, which holds nothing at their paths. Permission bits and mtimes
// (in nanoseconds) are those of the source, links are copied as links, holes
// stay holes and blocks are shared where the file system can (FICLONE). Owners,
// extended attributes and hard links between files are not carried over.
//
// It returns the snapshot of dst: every entry that was written, with dst's stat
// data and a known content id (ids that src does not know, or that may be stale,
// are computed on the way, but see Unread). An entry describes what was written, also where the
// source changed since the scan. What could not be read is left out and named in
// the problems. The error is not nil when dst could not be written, wrapping the
// errno (for example ENOSPC), or when ctx ended; dst is half-filled then.
//
// All work is relative to open folders and follows no link, so a program that
// moves folders about meanwhile cannot lead it elsewhere.
func Copy(
	ctx context.Context, src *snapshot.Snapshot, dst string, opt CopyOptions,
) (*snapshot.Snapshot, []snapshot.Problem, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, fmt.Errorf("copy %s to %s: %w", src.Root, dst, err)
	}
	entries, err := withParents(src.Entries)
	if err != nil {
		return nil, nil, fmt.Errorf("copy %s: %w", src.Root, err)
	}
	c := &copier{format: src.Format, CopyOptions: opt, in: entries, out: make([]snapshot.Entry, len(entries))}
	c.cutoff = src.Taken.Add(-copyTick).UnixNano()
	c.cond.L = &c.mu
	c.plan()
	c.Meter.expect(len(c.items))
	taken := time.Now()
	if err := c.openRoots(src.Root, dst); err != nil {
		return nil, nil, err
	}
	detach := context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })
	defer detach()
	workers := opt.Workers
	if workers <= 0 {
		workers = min(runtime.NumCPU()+1, 4) // one more than processors: some wait for the disk
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { (&copyWorker{copier: c}).run() })
	}
	wg.Wait()
	if err := c.failure(); err != nil {
		return nil, c.problems, fmt.Errorf("copy %s to %s: %w", src.Root, dst, err)
	}
	out := slices.DeleteFunc(c.out, func(e snapshot.Entry) bool { return e.Kind == 0 })
	snapshot.SortProblems(c.problems)
	return &snapshot.Snapshot{Root: dst, Format: src.Format, Taken: taken, Entries: out}, c.problems, nil
}

// copier is one Copy. Folders are entered parent first, and one stays open only
// until the last of its sub-folders has been opened through it: with the queue
// used as a stack that bounds the open handles by the depth of the tree, not by
// its width.
type copier struct {
	CopyOptions
	format  snapshot.Format
	in, out []snapshot.Entry // out[i] is what became of in[i]; Kind 0 means left out
	cutoff  int64            // content ids of files changed after it are not trusted
	dirs    []copyDir
	items   []int32 // entries that are not folders, those of one folder together
	noClone atomic.Bool
	stop    atomic.Bool

	mu       sync.Mutex
	cond     sync.Cond
	stack    []copyTask
	open     int // tasks not finished, those on the stack included
	problems []snapshot.Problem
	err      error
}

type copyDir struct {
	entry     int32 // index into in, -1 for the root
	parent    int32
	kid, next int32 // first sub-folder and next sibling, -1 for none
	kids      int32
	from, to  int32        // range of items
	src, dst  int          // open handles while pending > 0
	pending   atomic.Int32 // sub-folders and ranges that still need the handles
	nested    bool         // has sub-folders or items
	perm      uint32       // what it gets in the end
	mtime     unix.Timespec
}

// copyTask is a folder to enter (from < 0) or a range of its items to copy.
type copyTask struct{ dir, from, to int32 }

// withParents returns entries, with the folders added that are implied only. It
// refuses what would not be a tree.
func withParents(entries []snapshot.Entry) ([]snapshot.Entry, error) {
	dirs := map[superqode.RelPath]bool{"": true}
	var missing []snapshot.Entry
	last := superqode.RelPath("")
	for i := range entries {
		e := &entries[i]
		if i > 0 && entries[i-1].Path >= e.Path {
			return nil, fmt.Errorf("entries are not sorted at %q", e.Path)
		}
		dir, name := dirfd.Split(e.Path)
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 || e.Path[0] == '/' {
			return nil, fmt.Errorf("bad path %q", e.Path)
		}
		if e.Kind == snapshot.Dir {
			dirs[e.Path] = true
		}
		if dir == last {
			continue
		}
		for p := dir; !dirs[p]; p, _ = dirfd.Split(p) {
			missing = append(missing, snapshot.Entry{Path: p, Kind: snapshot.Dir, Perm: 0o755})
			dirs[p] = true
		}
		last = dir
	}
	if missing == nil {
		return entries, nil
	}
	all := append(slices.Clone(entries), missing...)
	slices.SortFunc(all, snapshot.ByPath)
	return withParents(all)
}

// plan groups the entries by folder.
func (c *copier) plan() {
	n := 1
	for i := range c.in {
		if c.in[i].Kind == snapshot.Dir {
			n++
		}
	}
	c.dirs = make([]copyDir, 1, n)
	c.dirs[0] = copyDir{entry: -1, parent: -1, kid: -1, next: -1}
	index := make(map[superqode.RelPath]int32, n)
	index[""] = 0
	owner := make([]int32, len(c.in))
	last, at := superqode.RelPath(""), int32(0)
	for i := range c.in {
		e := &c.in[i]
		if dir, _ := dirfd.Split(e.Path); dir != last {
			last, at = dir, index[dir]
		}
		owner[i] = at
		if e.Kind != snapshot.Dir {
			c.dirs[at].to++
			continue
		}
		id := int32(len(c.dirs))
		index[e.Path] = id
		c.dirs = append(c.dirs, copyDir{entry: int32(i), parent: at, kid: -1, next: c.dirs[at].kid})
		c.dirs[at].kid = id
		c.dirs[at].kids++
	}
	sum := int32(0)
	for i := range c.dirs {
		d := &c.dirs[i]
		d.nested = d.to > 0 || d.kids > 0
		d.from, sum = sum, sum+d.to
		d.to = d.from
	}
	c.items = make([]int32, sum)
	for i := range c.in {
		if c.in[i].Kind != snapshot.Dir {
			d := &c.dirs[owner[i]]
			c.items[d.to] = int32(i)
			d.to++
		}
	}
}

func (c *copier) openRoots(src, dst string) (err error) {
	root := &c.dirs[0]
	if root.src, err = unix.Open(src, dirfd.PassFlags&^unix.O_NOFOLLOW, 0); err != nil {
		return fmt.Errorf("open %s: %w", src, err)
	}
	if root.dst, err = unix.Open(dst, dirfd.DirFlags, 0); err != nil {
		_ = unix.Close(root.src) // opened for reading only
		return fmt.Errorf("open %s: %w", dst, err)
	}
	c.entered(0)
	return nil
}

// entered queues all that is in folder d, whose handles are open. The caller
// holds no use of the handles afterwards.
func (c *copier) entered(d int32) {
	dir := &c.dirs[d]
	chunks := (dir.to - dir.from + copyChunk - 1) / copyChunk
	dir.pending.Store(dir.kids + chunks)
	if dir.kids+chunks == 0 {
		dir.pending.Store(1)
		c.release(d)
		return
	}
	c.mu.Lock()
	for k := dir.kid; k >= 0; k = c.dirs[k].next {
		c.stack = append(c.stack, copyTask{dir: k, from: -1})
	}
	for f := dir.from; f < dir.to; f += copyChunk {
		c.stack = append(c.stack, copyTask{dir: d, from: f, to: min(f+copyChunk, dir.to)})
	}
	c.open += int(dir.kids + chunks)
	c.mu.Unlock()
	c.cond.Broadcast()
}

func (c *copier) problem(path superqode.RelPath, err error) {
	c.mu.Lock()
	c.problems = append(c.problems, snapshot.Problem{Path: path, Err: err})
	c.mu.Unlock()
}

// fail keeps the first error and ends the work.
func (c *copier) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.stop.Store(true)
}

// failure returns the first error. The end of a context may come in at any time,
// after the last file, too.
func (c *copier) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// copyBuffer is the size of each worker's buffer and the limit up to which a
// file is copied by one read and one write.
const copyBuffer = 128 << 10

// copyWorker is one goroutine of a copier.
type copyWorker struct {
	*copier
	buf  []byte
	hash hash.Hash
}

// run takes tasks until none is left. After a failure the tasks are still taken,
// to close the handles, but nothing more is done.
func (w *copyWorker) run() {
	w.buf = make([]byte, copyBuffer)
	for {
		w.mu.Lock()
		for len(w.stack) == 0 && w.open > 0 {
			w.cond.Wait()
		}
		if len(w.stack) == 0 {
			w.mu.Unlock()
			return
		}
		t := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.mu.Unlock()
		if t.from < 0 {
			w.enter(t.dir)
		} else {
			w.files(t)
		}
		w.mu.Lock()
		w.open--
		done := w.open == 0
		w.mu.Unlock()
		if done {
			w.cond.Broadcast()
		}
	}
}

// files copies a range of one folder's items.
func (w *copyWorker) files(t copyTask) {
	d := &w.dirs[t.dir]
	for _, i := range w.items[t.from:t.to] {
		if w.stop.Load() {
			break
		}
		e := &w.in[i]
		_, name := dirfd.Split(e.Path)
		var err error
		switch e.Kind {
		case snapshot.File:
			err = w.file(d, name, e, &w.out[i])
		case snapshot.Link:
			err = w.link(d, name, e, &w.out[i])
		default:
			err = sourceError{ErrSpecial}
		}
		w.settle(e.Path, err)
	}
	w.Meter.add(int(t.to - t.from))
	w.release(t.dir)
}

// sourceError marks an error of the source: a problem of one path and not the
// end of the copy.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func (c *copier) settle(path superqode.RelPath, err error) {
	if err == nil {
		return
	}
	full := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	if s, ok := errors.AsType[sourceError](err); ok && !full {
		c.problem(path, s.error)
		return
	}
	c.fail(fmt.Errorf("%q: %w", path, err))
}

// enter makes folder d in the destination and opens it on both sides. A source
// folder that is gone leaves all below it out.
func (w *copyWorker) enter(d int32) {
	dir := &w.dirs[d]
	defer w.release(dir.parent)
	if w.stop.Load() {
		return
	}
	e := &w.in[dir.entry]
	_, name := dirfd.Split(e.Path)
	w.settle(e.Path, w.openDir(d, dir, name))
}

func (w *copyWorker) openDir(d int32, dir *copyDir, name string) (err error) {
	parent := &w.dirs[dir.parent]
	var st unix.Stat_t
	dir.src = -1
	if dir.nested {
		if dir.src, err = dirfd.Open(parent.src, name, dirfd.PassFlags, 0); err != nil {
			return sourceError{fmt.Errorf("open: %w", err)}
		}
		err = unix.Fstat(dir.src, &st)
	} else {
		// An empty folder need not be opened, and may be one that cannot be.
		err = unix.Fstatat(parent.src, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = syscall.ENOTDIR
	}
	if err != nil {
		dir.closeSource()
		return sourceError{fmt.Errorf("stat: %w", err)}
	}
	dir.perm, dir.mtime = uint32(st.Mode)&0o7777, st.Mtim
	if err = unix.Mkdirat(parent.dst, name, dir.perm&0o777|0o700); err == nil || err == unix.EEXIST && w.Existing {
		dir.dst, err = dirfd.Open(parent.dst, name, dirfd.DirFlags, 0)
	}
	if err != nil {
		dir.closeSource()
		return targetError("make folder", err)
	}
	w.entered(d)
	return nil
}

func (dir *copyDir) closeSource() {
	if dir.src >= 0 {
		_ = unix.Close(dir.src) // opened for reading only
	}
}

// release gives up one use of a folder's handles. The last one gives the folder
// its mode and mtime: nothing is made in it any more.
func (c *copier) release(d int32) {
	dir := &c.dirs[d]
	if dir.pending.Add(-1) > 0 {
		return
	}
	if dir.entry >= 0 && !c.stop.Load() {
		e := &c.in[dir.entry]
		st, err := finish(dir.dst, dir.mtime, dir.perm)
		if err != nil {
			c.settle(e.Path, targetError("set mode and time", err))
		} else {
			c.out[dir.entry] = snapshot.Entry{
				Path: e.Path, Kind: snapshot.Dir, Perm: uint32(st.Mode) & 0o7777, Stat: snapshot.StatOf(&st),
			}
		}
	}
	dir.closeSource()
	_ = unix.Close(dir.dst) // a folder handle has nothing to flush
}

// finish gives what was written its time and mode, and returns what it has become.
func finish(fd int, mtime unix.Timespec, perm uint32) (st unix.Stat_t, err error) {
	if err = dirfd.SetTime(fd, mtime); err == nil {
		err = unix.Fstat(fd, &st)
	}
	// The umask, or a set-id bit that the write cleared, shows here; usually not.
	if err == nil && uint32(st.Mode)&0o7777 != perm {
		if err = unix.Fchmod(fd, perm); err == nil {
			err = unix.Fstat(fd, &st)
		}
	}
	return st, err
}

// targetError wraps an error of the destination. A name that its file system can
// not hold is a problem of that path alone.
func targetError(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	switch {
	case errors.Is(err, syscall.EILSEQ), errors.Is(err, syscall.ENAMETOOLONG):
		return sourceError{err}
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w (the destination is not empty)", err)
	}
	return err
}

// copyTries is how often a file that changes while it is copied is copied anew.
const copyTries = 3

// link copies a symbolic link.
func (w *copyWorker) link(d *copyDir, name string, e, out *snapshot.Entry) error {
	var st unix.Stat_t
	n, err := unix.Readlinkat(d.src, name, w.buf)
	if err == nil {
		err = unix.Fstatat(d.src, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return sourceError{fmt.Errorf("read link: %w", err)}
	}
	*out = snapshot.Entry{Path: e.Path, Kind: snapshot.Link, Size: int64(n), Link: e.Link, ID: e.ID}
	if string(w.buf[:n]) != e.Link || e.ID.IsZero() {
		out.Link, out.ID = string(w.buf[:n]), w.hashBytes(w.buf[:n])
	}
	if err = unix.Symlinkat(out.Link, d.dst, name); err != nil {
		return w.dropped(out, targetError("make link", err))
	}
	if err = unix.UtimesNanoAt(d.dst, name, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		err = unix.Fstatat(d.dst, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return w.dropped(out, targetError("set time", err))
	}
	out.Perm, out.Stat = e.Perm, snapshot.StatOf(&st)
	return nil
}

// dropped takes an entry out of the result again.
func (w *copyWorker) dropped(out *snapshot.Entry, err error) error {
	*out = snapshot.Entry{}
	return err
}

// file copies a regular file. The source is read first and stat'ed after: equal
// stat data then proves that the contents read are those of the scan.
func (w *copyWorker) file(d *copyDir, name string, e, out *snapshot.Entry) error {
	in, err := dirfd.Open(d.src, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return sourceError{fmt.Errorf("open: %w", err)}
	}
	defer unix.Close(in) //nolint:errcheck // opened for reading only
	var st unix.Stat_t
	small := e.Size < copyBuffer && w.noClone.Load()
	n := 0
	if small {
		if n, err = dirfd.ReadAt(in, w.buf[:e.Size+1], int(e.Size), 0); err != nil {
			return sourceError{fmt.Errorf("read: %w", err)}
		}
	}
	if err = unix.Fstat(in, &st); err != nil {
		return sourceError{fmt.Errorf("stat: %w", err)}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return sourceError{fmt.Errorf("not a regular file any more")}
	}
	small = small && int64(n) == st.Size && !isSparse(&st)
	fd, err := dirfd.Open(d.dst, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, uint32(st.Mode)&0o777)
	if err != nil {
		return targetError("create", err)
	}
	id := w.trustedID(e, &st)
	if small {
		if err = dirfd.WriteAt(fd, w.buf[:n], 0); err == nil && id.IsZero() {
			id = w.hashBytes(w.buf[:n])
		}
	} else {
		id, err = w.contents(in, fd, e, &st)
	}
	changed := false
	if err == errKeptChanging {
		changed, err = true, nil
	}
	if err == nil {
		if st, err = finish(fd, st.Mtim, uint32(st.Mode)&0o7777); err == nil {
			*out = snapshot.Entry{
				Path: e.Path, Kind: snapshot.File, Perm: uint32(st.Mode) & 0o7777, Size: st.Size, ID: id,
				Stat: snapshot.StatOf(&st),
			}
		}
	}
	if cerr := unix.Close(fd); err == nil && cerr != nil {
		err = cerr // network file systems tell here that the disk is full
	}
	if err != nil {
		_ = unix.Unlinkat(d.dst, name, 0) // half a file is worth nothing; the first error is the one to tell
		return w.dropped(out, targetError("write", err))
	}
	if changed {
		return sourceError{snapshot.ErrChangedWhileRead}
	}
	return nil
}

// trustedID returns the content id that the scan knew if the file is still in
// the state that was scanned.
func (w *copyWorker) trustedID(e *snapshot.Entry, st *unix.Stat_t) snapshot.ID {
	s := snapshot.StatOf(st)
	if e.Size != st.Size || e.Stat.Dev != s.Dev || e.Stat.Ino != s.Ino || e.Stat.Mtime != s.Mtime ||
		e.Stat.Ctime != s.Ctime || s.Mtime >= w.cutoff || s.Ctime >= w.cutoff {
		return snapshot.ID{}
	}
	return e.ID
}

func (w *copyWorker) hashBytes(b []byte) snapshot.ID {
	w.startHash(int64(len(b)))
	w.hash.Write(b)
	var sum [32]byte
	return snapshot.IDFrom(w.hash.Sum(sum[:0]))
}

func (w *copyWorker) startHash(size int64) {
	if w.hash == nil {
		w.hash = w.format.NewBlobHash(size)
		return
	}
	w.hash.Reset()
	var head [32]byte
	w.hash.Write(append(strconv.AppendInt(append(head[:0], "blob "...), size, 10), 0))
}

// errKeptChanging is ErrChangedWhileRead on its way up: the file was written and
// is to be finished.
var errKeptChanging = errors.New("kept changing")

// copyStep is how much of a big file is copied between two looks at whether to
// stop.
const copyStep = 8 << 20

// contents fills fd with the contents of in by the cheapest way that the file
// systems have, and returns their id. st is in's state before, and after.
func (w *copyWorker) contents(in, fd int, e *snapshot.Entry, st *unix.Stat_t) (snapshot.ID, error) {
	for try := 1; ; try++ {
		before := *st
		if err := w.transfer(in, fd, &before); err != nil {
			return snapshot.ID{}, err
		}
		if err := unix.Fstat(in, st); err != nil {
			return snapshot.ID{}, sourceError{err}
		}
		same := before.Size == st.Size && before.Mtim == st.Mtim && before.Ctim == st.Ctim
		if !same && try < copyTries {
			if err := unix.Ftruncate(fd, 0); err != nil {
				return snapshot.ID{}, err
			}
			continue
		}
		id := w.trustedID(e, st)
		if w.Unread {
			id = e.ID
		}
		var err error
		if !w.Unread && (!same || id.IsZero()) {
			id, err = w.hashFile(fd)
		}
		if err == nil && !same {
			err = errKeptChanging
		}
		return id, err
	}
}

// transfer copies st.Size bytes from in to fd: by sharing blocks, else data
// range by data range where there are holes, else all in one range.
func (w *copyWorker) transfer(in, fd int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if !w.noClone.Load() {
		switch err := cloneFile(in, fd); {
		case err == nil:
			return nil
		case noCloneHere(err):
			w.noClone.Store(true)
		}
	}
	if !isSparse(st) {
		return w.copyRange(in, fd, 0, st.Size)
	}
	if err := unix.Ftruncate(fd, st.Size); err != nil {
		return err
	}
	for off := int64(0); off < st.Size; {
		data, hole, err := nextData(in, off, st.Size)
		if err != nil {
			return w.copyRange(in, fd, off, st.Size)
		}
		if err := w.copyRange(in, fd, data, hole); err != nil {
			return err
		}
		off = hole
	}
	return nil
}

// copyRange copies the bytes from off up to end, or up to where the file ends.
func (w *copyWorker) copyRange(in, fd int, off, end int64) error {
	inKernel := true
	for off < end {
		if w.stop.Load() {
			return context.Canceled // fail has the real reason already
		}
		var n int
		var err error
		if inKernel {
			n, err = copyFileRange(in, fd, off, int(min(end-off, copyStep)))
			switch {
			case err == nil && n > 0:
				off += int64(n)
				continue
			case err == syscall.EINTR:
				continue
			case err == syscall.ENOSPC || err == syscall.EDQUOT:
				return err
			}
			inKernel = false // not between these file systems, or the end: reading tells which
		}
		if n, err = dirfd.ReadAt(in, w.buf[:min(int64(len(w.buf)), end-off)], 1, off); err != nil {
			return sourceError{err}
		}
		if n == 0 {
			return nil
		}
		if err = dirfd.WriteAt(fd, w.buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// hashFile returns the id of what was written to fd.
func (w *copyWorker) hashFile(fd int) (snapshot.ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return snapshot.ID{}, err
	}
	w.startHash(st.Size)
	for off := int64(0); off < st.Size; {
		n, err := dirfd.ReadAt(fd, w.buf, 1, off)
		if err == nil && n == 0 {
			err = snapshot.ErrChangedWhileRead // someone shortens our copy
		}
		if err != nil {
			return snapshot.ID{}, err
		}
		if w.stop.Load() {
			return snapshot.ID{}, context.Canceled // fail has the real reason already
		}
		w.hash.Write(w.buf[:n])
		off += int64(n)
	}
	var sum [32]byte
	return snapshot.IDFrom(w.hash.Sum(sum[:0])), nil
}

// isSparse reports whether a file has holes worth keeping. Small files may have
// no block at all because their file system keeps them in the inode.
func isSparse(st *unix.Stat_t) bool {
	return st.Size > 4096 && st.Blocks*512 < st.Size
}

// CanClone reports whether files of the folder from can be cloned (FICLONE) into
// the folder to, where two files are made to try it.
func CanClone(from, to string) bool {
	var a, b unix.Stat_t
	if unix.Stat(from, &a) != nil || unix.Stat(to, &b) != nil || a.Dev != b.Dev {
		return false
	}
	in, err := os.CreateTemp(to, ".clone-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(in.Close(), os.Remove(in.Name())) }() // an empty-handed answer is the only harm
	if _, err := in.Write(make([]byte, 4096)); err != nil {
		return false
	}
	out, err := os.CreateTemp(to, ".clone-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(out.Close(), os.Remove(out.Name())) }()
	return cloneFile(int(in.Fd()), int(out.Fd())) == nil
}
