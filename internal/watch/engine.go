package watch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Stamp distinguishes one state of a path from another.
type Stamp struct {
	Mode  fs.FileMode // type and permission bits; zero: nothing is there
	Ino   uint64
	Size  int64
	Mtime int64 // nanoseconds since 1970
}

// isDir reports whether it is a folder's.
func (s Stamp) isDir() bool { return s.Mode.IsDir() }

// same reports whether nothing has changed that makes an event.
func (s Stamp) same(t Stamp) bool {
	if s.isDir() && t.isDir() {
		return s.Ino == t.Ino
	}
	return s == t
}

// mark records when hints about a path came.
type mark struct{ first, last time.Time }

// engine turns hints into events.
type engine struct {
	opt  Options
	root uint64 // inode
	out  chan Event
	kick chan struct{} // there is a first hint

	whole sync.Mutex // held while everything is looked at: both halves of a move are found then

	mu    sync.Mutex
	dirty map[string]mark
	err   error
	ended chan struct{}

	know sync.Mutex // index
	index
}

func newEngine(opt Options, root os.FileInfo) *engine {
	return &engine{
		opt: opt, root: inode(root), out: make(chan Event), kick: make(chan struct{}, 1), ended: make(chan struct{}),
		dirty: map[string]mark{}, index: index{known: map[string]Stamp{}, base: opt.Baseline},
	}
}

// touch records a hint about a path. It never blocks.
func (e *engine) touch(rel string, at time.Time) {
	if rel == "" || e.opt.ignored(rel) {
		return
	}
	e.mu.Lock()
	m, ok := e.dirty[rel]
	if !ok {
		m.first = at
	}
	m.last = at
	e.dirty[rel] = m
	e.mu.Unlock()
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// fail ends the watcher by itself.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		close(e.ended)
	}
}

// flushes reports what has become quiet, until the context ends or the watcher
// fails.
func (e *engine) flushes(ctx context.Context) {
	var alarm <-chan time.Time // when something is due
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.ended:
			return
		case <-e.kick:
			if alarm == nil { // more hints postpone nothing
				alarm = time.After(e.opt.Debounce)
			}
			continue
		case <-alarm:
		}
		alarm = nil
		if next := e.flush(false); next > 0 {
			alarm = time.After(next)
		}
	}
}

// flush reports what is due, or everything, and returns how long to wait before
// the next flush, 0 when nothing is left.
func (e *engine) flush(all bool) time.Duration {
	list, next := e.due(all)
	for _, ev := range list {
		e.out <- ev
	}
	return next
}

func (e *engine) due(all bool) (list []Event, next time.Duration) {
	e.whole.Lock()
	defer e.whole.Unlock()
	now := time.Now()
	due := map[string]time.Time{}
	e.mu.Lock()
	for p, m := range e.dirty {
		wait := min(e.opt.Debounce-now.Sub(m.last), e.opt.Ceiling-now.Sub(m.first))
		if all || wait <= 0 {
			due[p] = m.first
			delete(e.dirty, p)
		} else if next == 0 || wait < next {
			next = wait
		}
	}
	e.mu.Unlock()
	if len(due) == 0 {
		return nil, next
	}
	b := newBatch(e)
	for _, p := range slices.Sorted(maps.Keys(due)) { // a folder first: everything in it is done with it
		b.look(p, due[p])
	}
	b.partners()
	b.strays()
	e.know.Lock()
	e.release()
	e.know.Unlock()
	return b.events(), next
}

// found is one side of a difference.
type found struct {
	stamp Stamp
	first time.Time
}

// batch is what one flush found: the difference between what was reported
// before and what is known after it. The tree may change meanwhile, so a flush
// can find a path more than once; only the last state counts.
type batch struct {
	e                    *engine
	gone, fresh, changed map[string]found
	inside               map[string]bool // of fresh: what was found in new folders, and gave no hint of its own
}

func newBatch(e *engine) *batch {
	return &batch{
		e: e, gone: map[string]found{}, fresh: map[string]found{}, changed: map[string]found{},
		inside: map[string]bool{},
	}
}

// look compares a path with what is known about it.
func (b *batch) look(rel string, first time.Time) {
	now, there := b.e.stat(rel)
	b.e.know.Lock()
	defer b.e.know.Unlock()
	before, known := b.e.find(rel)
	switch {
	case known && there && before.same(now):
		return
	case known && there && before.Mode.Type() == now.Mode.Type() && !now.isDir():
		b.e.learn(rel, now)
		if f, told := b.fresh[rel]; told {
			b.fresh[rel] = found{now, f.first}
		} else {
			b.changed[rel] = found{now, first}
		}
		return
	}
	if known {
		all := map[string]Stamp{rel: before}
		if before.isDir() {
			b.e.below(rel, func(p string, s Stamp) { all[p] = s })
		}
		for p, s := range all {
			b.lose(p, s, first)
		}
	}
	if there {
		b.add(rel, now, first)
	}
}

// lose records that a path is gone. If this batch itself had found it before,
// it never existed.
func (b *batch) lose(rel string, before Stamp, first time.Time) {
	b.e.forget(rel)
	delete(b.changed, rel)
	if _, met := b.fresh[rel]; met {
		delete(b.fresh, rel)
		return
	}
	b.gone[rel] = found{before, first}
}

// add records something new and, for a folder, everything in it: the contents
// of a moved folder are reported together with it.
func (b *batch) add(rel string, now Stamp, first time.Time) {
	if before, known := b.e.find(rel); known && before.same(now) {
		return
	}
	b.fresh[rel] = found{now, first}
	b.e.learn(rel, now)
	if !now.isDir() {
		return
	}
	for _, name := range b.e.names(rel) {
		p := rel + "/" + name
		if b.e.opt.ignored(p) {
			continue
		}
		if s, ok := b.e.stat(p); ok {
			if _, known := b.e.find(p); !known {
				b.add(p, s, first)
				b.inside[p] = true
			}
		}
	}
}

// partners looks for the other halves of moves among what is not quiet yet.
func (b *batch) partners() {
	if len(b.gone) == 0 && len(b.fresh) == 0 {
		return
	}
	const most = 1000
	var more []string
	b.e.mu.Lock()
	for p := range b.e.dirty {
		if more = append(more, p); len(more) == most {
			break
		}
	}
	b.e.mu.Unlock()
	inodes := map[uint64]bool{}
	for _, side := range []map[string]found{b.gone, b.fresh} {
		for _, f := range side {
			inodes[f.stamp.Ino] = true
		}
	}
	for _, p := range more {
		now, there := b.e.stat(p)
		b.e.know.Lock()
		before, known := b.e.find(p)
		b.e.know.Unlock()
		if there && !known && inodes[now.Ino] || known && !there && inodes[before.Ino] {
			b.e.mu.Lock()
			m, ok := b.e.dirty[p]
			delete(b.e.dirty, p)
			b.e.mu.Unlock()
			if ok {
				b.look(p, m.first)
			}
		}
	}
}

// strays looks for the old places of what is in new folders: something that was
// moved into one is there already, and the hint that it has left its old place
// may still be on its way.
func (b *batch) strays() {
	met := map[identity]time.Time{}
	for p := range b.inside {
		if f, ok := b.fresh[p]; ok {
			met[f.stamp.identity()] = f.first
		}
	}
	for _, f := range b.gone {
		delete(met, f.stamp.identity()) // its old place was found, too
	}
	if len(met) == 0 {
		return
	}
	var olds []string
	b.e.know.Lock()
	b.e.below("", func(p string, s Stamp) {
		if _, moved := met[s.identity()]; moved && b.fresh[p] == (found{}) {
			olds = append(olds, p)
		}
	})
	stamps := make([]Stamp, len(olds))
	slices.Sort(olds)
	for i, p := range olds {
		stamps[i], _ = b.e.find(p)
	}
	b.e.know.Unlock()
	for i, p := range olds {
		if _, there := b.e.stat(p); !there {
			b.look(p, met[stamps[i].identity()])
		}
	}
}

// lstat looks at a path and follows no link, but for the root, which may be the name of a
// descriptor.
func (e *engine) lstat(rel string) (os.FileInfo, error) {
	if rel == "" || rel == "." {
		return os.Stat(e.opt.Root)
	}
	return os.Lstat(filepath.Join(e.opt.Root, rel))
}

// stat looks at a path.
func (e *engine) stat(rel string) (Stamp, bool) {
	st, err := e.lstat(rel)
	if err != nil {
		return Stamp{}, false
	}
	return stampOf(st), true
}

func stampOf(st os.FileInfo) Stamp {
	s := Stamp{Mode: st.Mode(), Ino: inode(st), Size: st.Size(), Mtime: st.ModTime().UnixNano()}
	if st.IsDir() {
		s.Size, s.Mtime = 0, 0
	}
	return s
}

// names lists a folder; one that it cannot read is empty.
func (e *engine) names(rel string) []string {
	d, err := os.Open(filepath.Join(e.opt.Root, rel))
	if err != nil {
		return nil
	}
	names, err := d.Readdirnames(-1)
	if cerr := d.Close(); err != nil || cerr != nil {
		return names // what could be read
	}
	return names
}

// rootGone reports whether the root is no longer the same folder.
func (e *engine) rootGone() bool {
	st, err := os.Stat(e.opt.Root)
	return errors.Is(err, fs.ErrNotExist) || err == nil && (!st.IsDir() || inode(st) != e.root)
}

// inode returns a file's number, 0 if the system has none.
func inode(st os.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
