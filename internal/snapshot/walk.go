package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

const (
	// walkChunk is how many names of one directory a goroutine takes at a time.
	walkChunk = 256
	// walkHandles bounds the directories that stay open for their
	// sub-directories, well below the usual limit of 1024 open files. Those
	// beyond it are opened again from the root, name by name.
	walkHandles = 200
	// walkTries is how often a file that changes while it is read is read anew.
	walkTries = 3
)

// walker is one Scan. Directories are opened relative to their parent's handle,
// so that neither the length of a path nor a link that someone puts in its way
// meanwhile matters. The queue is a stack: the walk goes deep first and few
// parents are open at a time.
//
// A name that Previous has at position i goes to out[i]; all others go to the
// list of their directory and are merged in at the end. So the usual scan, where
// hardly anything is new, neither sorts nor moves an entry.
type walker struct {
	opt     ScanOptions
	root    int // handle
	prev    []Entry
	out     []Entry
	handles atomic.Int64 // open directories
	slots   atomic.Int64 // entries in lists of directories

	mu       sync.Mutex
	cond     sync.Cond
	stack    []walkTask
	busy     int
	problems []Problem
	gits     []superqode.RelPath
	topErr   error
}

// walkTask is a directory to enter, or a range of its names to look at.
type walkTask struct {
	node     *walkNode
	from, to int32 // 0, 0 to enter
}

// walkNode is one directory.
type walkNode struct {
	path   superqode.RelPath // "" for the root
	parent *walkNode         // its handle is kept for us; nil to open from the root
	entry  *Entry            // where it is recorded; nil for the root
	lo, hi int32             // what Previous holds below it

	fd    int
	uses  atomic.Int32 // tasks and sub-directories that need fd
	names []byte       // of directories that are looked at in ranges: see dirNames
	items []walkItem

	fresh []Entry // what Previous does not have, by name; Kind 0 means left out
	mu    sync.Mutex
	subs  []*walkNode
}

// walkItem is one name in a directory.
type walkItem struct {
	off, len     uint32 // in the names buffer
	at           int32  // position in prev, or -1
	slot         int32  // position in fresh when at is -1
	subLo, subHi int32  // what prev holds below it
}

// walkWorker is one goroutine of a walk with the memory that it uses again and
// again.
type walkWorker struct {
	*walker
	dir      dirNames
	items    []walkItem
	children []prevChild
	subs     []*walkNode
	paths    []byte  // arena that paths are cut from
	entries  []Entry // arena that fresh lists are cut from
	st       unix.Stat_t
	reader   fileReader
}

func newWalkWorker(w *walker) *walkWorker {
	return &walkWorker{walker: w, reader: fileReader{format: w.opt.Format}}
}

func (w *walkWorker) run(ctx context.Context) {
	for {
		w.mu.Lock()
		for len(w.stack) == 0 && w.busy > 0 {
			w.cond.Wait()
		}
		if len(w.stack) == 0 {
			w.mu.Unlock()
			w.cond.Broadcast()
			return
		}
		t := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.busy++
		w.mu.Unlock()
		switch {
		case t.to > 0:
			w.look(ctx, t.node, t.node.names, t.node.items[t.from:t.to])
			w.release(t.node)
		default:
			w.enter(ctx, t.node)
		}
		w.mu.Lock()
		w.busy--
		last := w.busy == 0 && len(w.stack) == 0
		w.mu.Unlock()
		if last {
			w.cond.Broadcast()
		}
	}
}

func (w *walker) push(tasks ...walkTask) {
	w.mu.Lock()
	w.stack = append(w.stack, tasks...)
	w.mu.Unlock()
	if len(tasks) > 1 {
		w.cond.Broadcast()
	} else {
		w.cond.Signal()
	}
}

func (w *walker) problem(path superqode.RelPath, err error) {
	w.mu.Lock()
	w.problems = append(w.problems, Problem{path, err})
	w.mu.Unlock()
}

// release gives up one use of a directory's handle.
func (w *walker) release(n *walkNode) {
	if n.uses.Add(-1) == 0 {
		_ = unix.Close(n.fd) // opened for reading only
		w.handles.Add(-1)
		n.names, n.items = nil, nil
	}
}

// enter lists a directory and looks at all its names.
func (w *walkWorker) enter(ctx context.Context, n *walkNode) {
	err := w.open(n)
	if err == nil {
		n.uses.Store(1)
		w.handles.Add(1)
		defer w.release(n)
		if ctx.Err() != nil {
			return
		}
		err = w.dir.read(n.fd)
	}
	switch {
	case err == nil:
	case n.entry == nil:
		w.topErr = err // nobody else runs yet, or any more
		return
	case err == unix.ENOENT:
		n.entry.Kind = 0 // gone since its parent was listed
		return
	case err == unix.ENOTDIR, err == unix.ELOOP:
		w.problem(n.path, ErrChangedWhileRead)
		return
	default:
		w.problem(n.path, err)
		return
	}
	w.dir.sort()
	fresh := w.join(n)
	w.slots.Add(int64(fresh))
	n.fresh = w.newEntries(fresh)
	if len(w.items) <= walkChunk {
		w.look(ctx, n, w.dir.buf, w.items)
		return
	}
	n.names, n.items = append([]byte(nil), w.dir.buf...), append([]walkItem(nil), w.items...)
	var tasks []walkTask
	for i := 0; i < len(n.items); i += walkChunk {
		tasks = append(tasks, walkTask{n, int32(i), int32(min(i+walkChunk, len(n.items)))})
	}
	n.uses.Add(int32(len(tasks)))
	w.push(tasks...)
}

// open opens a directory through its parent, and the parent is let go.
func (w *walkWorker) open(n *walkNode) (err error) {
	if p := n.parent; p != nil {
		_, name := dirfd.Split(n.path)
		n.fd, err = dirfd.Open(p.fd, name, dirfd.DirFlags, 0)
		n.parent = nil
		w.release(p)
		return err
	}
	n.fd, err = dirfd.OpenPath(w.root, string(n.path), dirfd.DirFlags)
	return err
}

// newEntries cuts n zero entries from the arena.
func (w *walkWorker) newEntries(n int) []Entry {
	if n > len(w.entries) {
		if n > walkChunk {
			return make([]Entry, n)
		}
		w.entries = make([]Entry, 2*walkChunk)
	}
	list := w.entries[:n:n]
	w.entries = w.entries[n:]
	return list
}

// newPath joins a directory and a name in the arena.
func (w *walkWorker) newPath(dir superqode.RelPath, name []byte) superqode.RelPath {
	need := len(dir) + 1 + len(name)
	if need > cap(w.paths)-len(w.paths) {
		w.paths = make([]byte, 0, max(32<<10, need))
	}
	from := len(w.paths)
	if dir != "" {
		w.paths = append(append(w.paths, dir...), '/')
	}
	w.paths = append(w.paths, name...)
	return superqode.RelPath(unsafe.String(&w.paths[from], len(w.paths)-from)) // never written again
}

// look records the given names of n and queues its sub-directories.
func (w *walkWorker) look(ctx context.Context, n *walkNode, names []byte, items []walkItem) {
	w.subs = w.subs[:0]
	for i := range items {
		w.item(ctx, n, names, &items[i])
	}
	if len(w.subs) == 0 {
		return
	}
	keep := w.handles.Load() < walkHandles
	if keep {
		n.uses.Add(int32(len(w.subs)))
	}
	n.mu.Lock()
	n.subs = append(n.subs, w.subs...)
	n.mu.Unlock()
	w.mu.Lock()
	for _, s := range w.subs {
		if keep {
			s.parent = n
		}
		w.stack = append(w.stack, walkTask{node: s})
	}
	w.mu.Unlock()
	w.cond.Broadcast()
}

// item records one name.
func (w *walkWorker) item(ctx context.Context, n *walkNode, names []byte, it *walkItem) {
	var e, p *Entry
	name := names[it.off : it.off+it.len]
	if it.at >= 0 {
		p, e = &w.prev[it.at], &w.out[it.at]
		e.Path = p.Path
	} else {
		e = &n.fresh[it.slot]
		e.Path = w.newPath(n.path, name)
	}
	for try := 1; ; try++ {
		err := w.state(n.fd, names, it, e, p)
		if err == nil && w.opt.Skip != nil && w.opt.Skip(e.Path, e.Kind) {
			w.leaveOut(e)
			return
		}
		if err == nil && e.Kind == File && e.ID.IsZero() {
			err = w.content(ctx, n.fd, name, e)
		}
		switch {
		case err == nil:
			if e.Kind == Dir {
				s := &walkNode{path: e.Path, entry: e}
				if p != nil && p.Kind == Dir {
					s.lo, s.hi = it.subLo, it.subHi
				}
				w.subs = append(w.subs, s)
			}
			return
		case err == unix.ENOENT:
			e.Kind = 0 // gone since the directory was listed
			return
		case errors.Is(err, ErrChangedWhileRead) && try < walkTries:
			continue
		case ctx.Err() == nil:
			w.problem(e.Path, err)
		}
		return
	}
}

// leaveOut takes an entry out of the snapshot.
func (w *walker) leaveOut(e *Entry) {
	e.Kind = 0
	if e.Path.Name() == ".git" {
		w.mu.Lock()
		w.gits = append(w.gits, e.Path)
		w.mu.Unlock()
	}
}

// state fills in all of e but the content id of a file that p, which may be nil,
// does not prove.
func (w *walkWorker) state(dir int, names []byte, it *walkItem, e, p *Entry) error {
	e.Kind, e.Link, e.ID = 0, "", ID{}
	if err := statAt(dir, names, it.off, it.len, &w.st); err != nil {
		return err
	}
	e.fill(&w.st)
	if p != nil && p.SameState(e) && w.opt.Previous.vouches(p) {
		e.Link, e.ID = p.Link, p.ID
	}
	if e.Kind != Link || !e.ID.IsZero() {
		return nil
	}
	target, err := readLinkAt(dir, string(names[it.off:it.off+it.len]), e.Size)
	if err == unix.EINVAL {
		return ErrChangedWhileRead // a link no more
	}
	e.Link, e.Size = target, int64(len(target))
	if err == nil {
		e.ID = w.opt.Format.HashBlob([]byte(target))
	}
	return err
}

// content finds the content id of a file that Previous did not know.
func (w *walkWorker) content(ctx context.Context, dir int, name []byte, e *Entry) error {
	if w.opt.Known != nil {
		if id, ok := w.opt.Known.Lookup(e.Path, e); ok {
			e.ID = id
			return nil
		}
	}
	if w.opt.Contents == StatOnly {
		return nil
	}
	return w.reader.hash(ctx, dir, string(name), e)
}

// fill takes over what lstat tells.
func (e *Entry) fill(st *unix.Stat_t) {
	e.Perm, e.Size, e.Stat = uint32(st.Mode)&0o7777, 0, StatOf(st)
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		e.Kind, e.Size = File, st.Size
	case unix.S_IFLNK:
		e.Kind, e.Size = Link, st.Size
	case unix.S_IFDIR:
		e.Kind = Dir
	default:
		e.Kind, e.Link = Other, specialName(uint32(st.Mode), uint64(st.Rdev))
	}
}

// specialName tells what a special file is: "fifo", "socket", "char 1:3" or
// "block 8:0". It stands in Entry.Link.
func specialName(mode uint32, rdev uint64) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return fmt.Sprintf("char %d:%d", unix.Major(rdev), unix.Minor(rdev))
	case unix.S_IFBLK:
		return fmt.Sprintf("block %d:%d", unix.Major(rdev), unix.Minor(rdev))
	}
	return "special"
}

// dirNames are the names in one directory, without "." and "..": ranges of buf,
// each followed by a NUL byte, so that they can be handed to the kernel as they
// are.
type dirNames struct {
	buf  []byte
	refs []nameRef
}

type nameRef struct {
	key      uint64 // the first eight bytes, so that few comparisons touch buf
	off, len uint32
}

func (d *dirNames) name(r nameRef) []byte { return d.buf[r.off : r.off+r.len] }

// add records the name of n bytes at off.
func (d *dirNames) add(off, n int) {
	var first [8]byte
	copy(first[:], d.buf[off:off+n])
	d.refs = append(d.refs, nameRef{binary.BigEndian.Uint64(first[:]), uint32(off), uint32(n)})
}

func (d *dirNames) sort() {
	slices.SortFunc(d.refs, func(a, b nameRef) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return bytes.Compare(d.name(a), d.name(b))
	})
}

// prevChild is a direct child of a directory in the previous snapshot, with the
// range of what lies below it.
type prevChild struct{ at, lo, hi int32 }

// join makes w.items of the names that were read, each with its place in the
// previous snapshot, and returns how many have none.
func (w *walkWorker) join(n *walkNode) (fresh int) {
	w.listPrevious(n)
	cut := len(n.path)
	if cut > 0 {
		cut++
	}
	w.items = w.items[:0]
	rest := w.children
	for _, r := range w.dir.refs {
		it := walkItem{off: r.off, len: r.len, at: -1}
		name := w.dir.name(r)
		for len(rest) > 0 {
			c := cmp.Compare(string(w.prev[rest[0].at].Path[cut:]), string(name)) // no copy: the compiler compares in place
			if c > 0 {
				break
			}
			if c == 0 {
				it.at, it.subLo, it.subHi = rest[0].at, rest[0].lo, rest[0].hi
			}
			rest = rest[1:]
		}
		if it.at < 0 {
			it.slot = int32(fresh)
			fresh++
		}
		w.items = append(w.items, it)
	}
	return fresh
}

// listPrevious fills w.children with what the previous snapshot holds directly
// in n, in the order of the names. What lies below a child "a" need not follow
// it at once: "a-b" sorts between "a" and "a/c".
func (w *walkWorker) listPrevious(n *walkNode) {
	w.children = w.children[:0]
	cut := len(n.path)
	if cut > 0 {
		cut++
	}
	for i := n.lo; i < n.hi; {
		p := string(w.prev[i].Path)
		slash := strings.IndexByte(p[cut:], '/')
		if slash < 0 {
			w.children = append(w.children, prevChild{at: i})
			i++
			continue
		}
		end := endOfPrefix(w.prev, i, n.hi, p[:cut+slash+1])
		for k := len(w.children) - 1; k >= 0; k-- {
			if string(w.prev[w.children[k].at].Path) == p[:cut+slash] {
				w.children[k].lo, w.children[k].hi = i, end
				break
			}
		}
		i = end
	}
}

// endOfPrefix returns the first position in (i, hi] whose path lacks the prefix
// that path i has. It looks ahead in growing steps, for most directories are
// small.
func endOfPrefix(list []Entry, i, hi int32, prefix string) int32 {
	step := int32(1)
	for i+step < hi && strings.HasPrefix(string(list[i+step].Path), prefix) {
		i += step
		step *= 2
	}
	lo, end := i+1, min(i+step, hi)
	for lo < end {
		mid := lo + (end-lo)/2
		if strings.HasPrefix(string(list[mid].Path), prefix) {
			lo = mid + 1
		} else {
			end = mid
		}
	}
	return lo
}

// readLinkAt reads a link's target. size is its length as lstat told it, which
// is 0 on some file systems.
func readLinkAt(dir int, name string, size int64) (string, error) {
	for n := max(int(size)+1, 128); ; n *= 2 {
		buf := make([]byte, n)
		got, err := unix.Readlinkat(dir, name, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", err
		}
		if got < n {
			return string(buf[:got]), nil
		}
	}
}

// collect returns all entries in the order of their paths.
func (w *walker) collect(top *walkNode) []Entry {
	fresh := top.collect(make([]Entry, 0, w.slots.Load()))
	if w.prev == nil {
		return fresh
	}
	out := slices.DeleteFunc(w.out, func(e Entry) bool { return e.Kind == 0 })
	if len(fresh) == 0 {
		return out
	}
	return mergeEntries(out, fresh)
}

// mergeEntries merges two sorted lists without a path in common, in a's memory
// as far as it reaches: from the end, so that nothing is overwritten too early.
func mergeEntries(a, b []Entry) []Entry {
	i, k := len(a), len(b)
	a = slices.Grow(a, k)[:i+k]
	for k > 0 {
		if i > 0 && a[i-1].Path > b[k-1].Path {
			a[i+k-1] = a[i-1]
			i--
		} else {
			a[i+k-1] = b[k-1]
			k--
		}
	}
	return a
}

// collect appends the fresh entries of n and all below it. What lies in a
// directory "a" has its place after "a-b" and before "a0", because of the slash,
// so a directory's contents are merged in by its name with a slash.
func (n *walkNode) collect(list []Entry) []Entry {
	if !slices.IsSortedFunc(n.subs, bySlash) {
		slices.SortFunc(n.subs, bySlash)
	}
	i := 0
	for _, s := range n.subs {
		for ; i < len(n.fresh) && !beforePath(s.path, n.fresh[i].Path); i++ {
			if n.fresh[i].Kind != 0 {
				list = append(list, n.fresh[i])
			}
		}
		list = s.collect(list)
	}
	for ; i < len(n.fresh); i++ {
		if n.fresh[i].Kind != 0 {
			list = append(list, n.fresh[i])
		}
	}
	n.fresh, n.subs = nil, nil
	return list
}

// beforePath reports whether dir with a slash at its end sorts before path.
func beforePath(dir, path superqode.RelPath) bool {
	n := min(len(dir), len(path))
	if dir[:n] != path[:n] {
		return dir[:n] < path[:n]
	}
	return len(path) > len(dir) && '/' < path[len(dir)]
}

func bySlash(a, b *walkNode) int {
	n := min(len(a.path), len(b.path))
	if c := cmp.Compare(a.path[:n], b.path[:n]); c != 0 {
		return c
	}
	switch {
	case len(a.path) < len(b.path):
		return int('/') - int(b.path[n])
	case len(a.path) > len(b.path):
		return int(a.path[n]) - int('/')
	}
	return 0
}

// StatAt returns what stands by a name in an open folder, without its path and
// content id. No link is followed.
func StatAt(dir int, name string) (e Entry, err error) {
	var st unix.Stat_t
	if err := dirfd.Retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return Entry{}, err
	}
	e.fill(&st)
	return e, nil
}

// StatEntry is StatAt of one file by its whole path. The error is an
// *os.PathError.
func StatEntry(file string) (Entry, error) {
	e, err := StatAt(unix.AT_FDCWD, file)
	if err != nil {
		return Entry{}, &os.PathError{Op: "lstat", Path: file, Err: err}
	}
	return e, nil
}
