// Package watch reports what changes in a folder while it changes.
//
//	w, err := watch.Start(ctx, watch.Options{Root: dir})
//	for e := range w.Events() { … }
//	return w.Err()
//
// What the system reports is only a hint that something about a path may be
// different. A moment later (Options.Debounce) the watcher compares the path
// with what it knew about it, and the difference is the event. So an editor's
// save by temporary file and rename is one modification, a file that came and
// went in between is nothing, and where hints were lost (the kernel's queue was
// full) one look at everything makes up for them. If the system gives no hints,
// the watcher makes the same comparison of all files again and again.
//
// Promises: it reports every state that lasts. Not promised: that it reports
// every state in between, nor that it notices when a program gives a changed
// file its old size, inode and times again. It does not follow links, and does
// not look at git's own folders, .git at any depth.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Type says what happened to a path.
type Type string

// The types of event. Moved has two paths. A folder is never modified: what is
// in it has its own events.
const (
	Created  Type = "created"
	Modified Type = "modified"
	Deleted  Type = "deleted"
	Moved    Type = "moved"
)

// Event is one change. Paths are relative to the root, slash-separated raw bytes.
type Event struct {
	Type Type
	Path string
	Old  string // of Moved
	Dir  bool
	At   time.Time // when the first sign of it was seen
}

// Options say what to watch. The zero value of every field but Root is usable.
type Options struct {
	Root     string
	Ignore   []string      // doublestar patterns relative to the root; one without a slash is for names at any depth
	Debounce time.Duration // how long a path must be quiet before it is reported; 0: DefaultDebounce
	Ceiling  time.Duration // how long one that is never quiet is held back; 0: DefaultCeiling
	Poll     time.Duration // look this often instead of asking the system; 0: ask it
	Baseline Baseline      // what was there before, if known; nil: what is there now
	Warn     func(string)  // called when polling has to replace the system's events; may be nil

	limit int // for tests: how many folders the system watches
}

// Baseline is what a folder held before. Its methods are called from several
// goroutines.
type Baseline interface {
	// Find returns what a path was, and whether it was there.
	Find(path string) (Stamp, bool)
	// Below calls yield for every path below a folder, "" for all.
	Below(dir string, yield func(path string, s Stamp))
}

// The defaults of Options.
const (
	DefaultDebounce = 100 * time.Millisecond
	DefaultCeiling  = time.Second
	DefaultPoll     = 500 * time.Millisecond
)

// ErrRootGone means that the watched folder was deleted or moved away.
var ErrRootGone = errors.New("the watched folder is gone")

// Watcher watches until its context ends. Then it reports at once what it has
// noticed: go on reading until the channel is closed.
type Watcher struct {
	e    *engine
	done sync.WaitGroup
}

// Start begins to watch and returns when it watches every folder: from then on
// it misses nothing. It returns an error if the root is not a folder or a
// pattern is invalid.
func Start(ctx context.Context, opt Options) (*Watcher, error) {
	for _, p := range opt.Ignore {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("%q is not a pattern", p)
		}
	}
	real, err := filepath.EvalSymlinks(opt.Root)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(opt.Root)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", opt.Root)
	}
	if there, err := os.Lstat(real); err == nil && os.SameFile(st, there) { // else it is a descriptor in /proc
		opt.Root = real
	}
	if opt.Debounce <= 0 {
		opt.Debounce = DefaultDebounce
	}
	if opt.Ceiling <= 0 {
		opt.Ceiling = DefaultCeiling
	}
	opt.Ceiling = max(opt.Ceiling, opt.Debounce)
	if opt.Warn == nil {
		opt.Warn = func(string) {}
	}
	w := &Watcher{e: newEngine(opt, st)}
	ready := make(chan error, 1)
	w.done.Go(func() {
		defer close(w.e.out)
		w.run(ctx, ready)
	})
	if err := <-ready; err != nil {
		for range w.e.out { // nothing comes any more
		}
		return nil, err
	}
	return w, nil
}

// run is the watcher's life: hints come in, events go out.
func (w *Watcher) run(ctx context.Context, ready chan<- error) {
	var once sync.Once
	began := func(err error) { once.Do(func() { ready <- err }) }
	hints, stop := context.WithCancel(ctx)
	var sources sync.WaitGroup
	sources.Go(func() {
		err := w.e.hints(hints, func() { began(nil) })
		if err != nil && hints.Err() == nil {
			w.e.fail(err)
		}
		began(err)
	})
	w.e.flushes(ctx)
	stop()
	sources.Wait()
	w.e.flush(true)
}

// hints runs the system's source, or polls if there is none.
func (e *engine) hints(ctx context.Context, ready func()) error {
	every, begun := e.opt.Poll, false
	if every == 0 {
		every = DefaultPoll
		kind := networkFS(e.opt.Root)
		if kind == "" {
			err := (&notifier{e: e}).run(ctx, func() {
				begun = true
				ready()
			})
			limit, isLimit := errors.AsType[*limitError](err)
			if !isLimit {
				return err
			}
			e.opt.Warn(limit.advice(every))
		} else {
			e.opt.Warn(fmt.Sprintf("%s is on a network file system (%s), which does not report what others change: "+
				"superqode looks at it every %s instead; on a local one the limit is fs.inotify.max_user_watches",
				e.opt.Root, kind, every))
		}
	}
	return (&poller{e: e, every: every, begun: begun}).run(ctx, ready)
}

// Events returns the channel of events, which is closed when the watcher ends.
// A slow reader delays the reports; the watcher still notices everything.
func (w *Watcher) Events() <-chan Event { return w.e.out }

// Err returns why the watcher ended by itself, after its channel was closed.
func (w *Watcher) Err() error {
	w.done.Wait()
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.e.err
}

// ignored reports whether the watcher ignores a path, and everything below it.
func (o *Options) ignored(rel string) bool {
	base := path.Base(rel)
	if base == ".git" {
		return true
	}
	for _, p := range o.Ignore {
		p = strings.TrimSuffix(p, "/")
		name := rel
		if !strings.Contains(p, "/") {
			name = base
		}
		if ok, _ := doublestar.Match(p, name); ok { // Start has checked the patterns
			return true
		}
	}
	return false
}
