package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ErrSpecial is the reason given for sockets, FIFOs and devices: they are
// recorded in a snapshot and never copied or written out.
var ErrSpecial = errors.New("a socket, FIFO or device is not copied")

// ErrChangedWhileRead is the reason given for a file that kept changing while it
// was copied. What was written is in the result nevertheless.
var ErrChangedWhileRead = errors.New("changed while it was read")

// CopyOptions says how Copy works.
type CopyOptions struct {
	Workers  int  // goroutines; 0 means one more than there are processors, at most 4
	Existing bool // folders that dst holds are used; without it every path must be free
	Meter    *Meter
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
// are computed on the way). An entry describes what was written, also where the
// source changed since the scan. What could not be read is left out and named in
// the problems. The error is not nil when dst could not be written, wrapping the
// errno (for example ENOSPC), or when ctx ended; dst is half-filled then.
//
// All work is relative to open folders and follows no link, so a program that
// moves folders about meanwhile can not lead it elsewhere.
func Copy(ctx context.Context, src *Snapshot, dst string, opt CopyOptions) (*Snapshot, []Problem, error) {
	entries, err := withParents(src.Entries)
	if err != nil {
		return nil, nil, fmt.Errorf("copy %s: %w", src.Root, err)
	}
	c := &copier{format: src.Format, existing: opt.Existing, meter: opt.Meter, in: entries, out: make([]Entry, len(entries)), cutoff: src.Taken.Add(-copyTick).UnixNano()}
	c.cond.L = &c.mu
	c.plan()
	c.meter.expect(len(c.items))
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
	out := slices.DeleteFunc(c.out, func(e Entry) bool { return e.Kind == 0 })
	slices.SortFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return &Snapshot{Root: dst, Format: src.Format, Taken: taken, Entries: out}, c.problems, nil
}

// copier is one Copy. Folders are entered parent first, and one stays open only
// until the last of its sub-folders has been opened through it: with the queue
// used as a stack that bounds the open handles by the depth of the tree, not by
// its width.
type copier struct {
	format   Format
	existing bool
	meter    *Meter
	in, out  []Entry // out[i] is what became of in[i]; Kind 0 means left out
	cutoff   int64   // content ids of files changed after it are not trusted
	dirs     []copyDir
	items    []int32 // entries that are not folders, those of one folder together
	noClone  atomic.Bool
	stop     atomic.Bool

	mu       sync.Mutex
	cond     sync.Cond
	stack    []copyTask
	open     int // tasks not finished, those on the stack included
	problems []Problem
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
func withParents(entries []Entry) ([]Entry, error) {
	dirs := map[string]bool{"": true}
	var missing []Entry
	last := ""
	for i := range entries {
		e := &entries[i]
		if i > 0 && entries[i-1].Path >= e.Path {
			return nil, fmt.Errorf("entries are not sorted at %q", e.Path)
		}
		dir, name := splitPath(e.Path)
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 || e.Path[0] == '/' {
			return nil, fmt.Errorf("bad path %q", e.Path)
		}
		if e.Kind == Dir {
			dirs[e.Path] = true
		}
		if dir == last {
			continue
		}
		for p := dir; !dirs[p]; p, _ = splitPath(p) {
			missing = append(missing, Entry{Path: p, Kind: Dir, Perm: 0o755})
			dirs[p] = true
		}
		last = dir
	}
	if missing == nil {
		return entries, nil
	}
	all := append(slices.Clone(entries), missing...)
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return withParents(all)
}

// splitPath cuts p into its folder and its last name.
func splitPath(p string) (dir, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return "", p
}

// plan groups the entries by folder.
func (c *copier) plan() {
	n := 1
	for i := range c.in {
		if c.in[i].Kind == Dir {
			n++
		}
	}
	c.dirs = make([]copyDir, 1, n)
	c.dirs[0] = copyDir{entry: -1, parent: -1, kid: -1, next: -1}
	index := make(map[string]int32, n)
	index[""] = 0
	owner := make([]int32, len(c.in))
	last, at := "", int32(0)
	for i := range c.in {
		e := &c.in[i]
		if dir, _ := splitPath(e.Path); dir != last {
			last, at = dir, index[dir]
		}
		owner[i] = at
		if e.Kind != Dir {
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
		if c.in[i].Kind != Dir {
			d := &c.dirs[owner[i]]
			c.items[d.to] = int32(i)
			d.to++
		}
	}
}

func (c *copier) openRoots(src, dst string) (err error) {
	root := &c.dirs[0]
	if root.src, err = unix.Open(src, srcDirFlags&^unix.O_NOFOLLOW, 0); err != nil {
		return fmt.Errorf("open %s: %w", src, err)
	}
	if root.dst, err = unix.Open(dst, dstDirFlags, 0); err != nil {
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

func (c *copier) problem(path string, err error) {
	c.mu.Lock()
	c.problems = append(c.problems, Problem{Path: path, Err: err})
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
