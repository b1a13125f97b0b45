package snapshot

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
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
	topErr   error
}

// walkTask is a directory to enter, or a range of its names to look at.
type walkTask struct {
	node     *walkNode
	from, to int32 // 0, 0 to enter
}

// walkNode is one directory.
type walkNode struct {
	path   string    // "" for the root
	parent *walkNode // its handle is kept for us; nil to open from the root
	entry  *Entry    // where it is recorded; nil for the root
	lo, hi int32     // what Previous holds below it

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

func (w *walker) problem(path string, err error) {
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
		_, name := splitPath(n.path)
		n.fd, err = openDirAt(p.fd, name)
		n.parent = nil
		w.release(p)
		return err
	}
	n.fd, err = openByStep(w.root, n.path)
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
func (w *walkWorker) newPath(dir string, name []byte) string {
	need := len(dir) + 1 + len(name)
	if need > cap(w.paths)-len(w.paths) {
		w.paths = make([]byte, 0, max(32<<10, need))
	}
	from := len(w.paths)
	if dir != "" {
		w.paths = append(append(w.paths, dir...), '/')
	}
	w.paths = append(w.paths, name...)
	return unsafe.String(&w.paths[from], len(w.paths)-from) // never written again
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
			e.Kind = 0
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

// state fills in all of e but the content id of a file that p, which may be nil,
// does not prove.
func (w *walkWorker) state(dir int, names []byte, it *walkItem, e, p *Entry) error {
	e.Kind, e.Link, e.ID = 0, "", ID{}
	if err := statAt(dir, names, it.off, it.len, &w.st); err != nil {
		return err
	}
	e.fill(&w.st)
	if p != nil && p.sameState(e) && w.opt.Previous.vouches(p) {
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
	e.Perm, e.Size, e.Stat = uint32(st.Mode)&0o7777, 0, unixStat(st)
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
