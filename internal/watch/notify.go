package watch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifier gets its hints from the system. Three goroutines: fsnotify's own
// reads the kernel's queue; drain takes its events at once, whatever else goes
// on, so that the queue does not fill; work watches new folders and then looks
// at what is in them, because a file that is older than the watch gives no
// event.
type notifier struct {
	e *engine
	w *fsnotify.Watcher

	mu    sync.Mutex
	jobs  []job
	wake  chan struct{}
	dirs  map[string]uint64 // watched folders and their inodes; work's own
	where map[uint64]string // the folder last watched under an inode
}

// job is a folder to look after.
type job struct {
	rel    string
	moved  bool // something moved away from there
	rescan bool // look at everything
}

// limitError means that the system watches no more folders.
type limitError struct {
	dirs int
	err  error
}

func (e *limitError) Error() string {
	return fmt.Sprintf("cannot watch more than %d folders: %v", e.dirs, e.err)
}
func (e *limitError) Unwrap() error { return e.err }

// advice names the setting to raise.
func (e *limitError) advice(every time.Duration) string {
	name := "fs.inotify.max_user_watches"
	if errors.Is(e.err, syscall.EMFILE) || errors.Is(e.err, syscall.ENFILE) {
		name = "fs.inotify.max_user_instances (and fs.inotify.max_user_watches, and ulimit -n)"
	}
	return fmt.Sprintf("inotify's limit is reached after %d folders, so superqode looks for changes every %s "+
		"instead of seeing them at once; raise it: sudo sysctl %s=1048576", e.dirs, every, name)
}

func isLimit(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
		func(limit error) bool { return errors.Is(err, limit) })
}

func (n *notifier) run(ctx context.Context, ready func()) (err error) {
	n.wake, n.dirs, n.where = make(chan struct{}, 1), map[string]uint64{}, map[uint64]string{}
	if n.w, err = fsnotify.NewWatcher(); err != nil {
		if isLimit(err) {
			return &limitError{0, err}
		}
		return err
	}
	go n.drain()
	defer func() {
		// Linux takes up to 50 ms to end an inotify instance, and nobody needs
		// to wait for it; drain ends with it.
		go func() { _ = n.w.Close() }()
	}()
	if err := n.e.sweep(ctx, true, n.add); err != nil {
		return n.ended(ctx, err)
	}
	ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		if n.e.rootGone() {
			return n.e.lostRoot()
		}
		for _, j := range n.take() {
			if err := n.work(ctx, j); err != nil {
				return n.ended(ctx, err)
			}
		}
	}
}

func (n *notifier) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// drain takes events until the watcher is closed.
func (n *notifier) drain() {
	for {
		select {
		case ev, ok := <-n.w.Events:
			if !ok {
				return
			}
			n.event(ev)
		case err, ok := <-n.w.Errors:
			if !ok {
				return
			}
			if err != nil { // the queue was full, or something else was lost
				n.push(job{rescan: true})
			}
		}
	}
}

func (n *notifier) event(ev fsnotify.Event) {
	rel, err := filepath.Rel(n.e.opt.Root, ev.Name)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return
	}
	if rel == "." {
		if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			n.push(job{rescan: true})
		}
		return
	}
	n.e.touch(rel, time.Now())
	if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
		n.push(job{rel: rel, moved: ev.Has(fsnotify.Rename)})
	}
}

func (n *notifier) push(j job) {
	if j.rel != "" && n.e.opt.ignored(j.rel) {
		return
	}
	n.mu.Lock()
	n.jobs = append(n.jobs, j)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notifier) take() []job {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.jobs
	n.jobs = nil
	return list
}

// work adapts the watches to what is at a path now.
func (n *notifier) work(ctx context.Context, j job) error {
	if j.rescan {
		return n.e.sweep(ctx, false, n.add)
	}
	var again []string
	if _, watched := n.dirs[j.rel]; watched {
		again = n.drop(j.rel, j.moved)
	}
	for _, rel := range append(again, j.rel) {
		s, there := n.e.stat(rel)
		if !there || !s.isDir() {
			continue
		}
		if err := n.tree(ctx, rel); err != nil {
			return err
		}
	}
	return nil
}

// tree watches a folder and everything below it, and gives a hint for everything
// that came or went while it had no watch.
func (n *notifier) tree(ctx context.Context, rel string) error {
	return n.e.sweepBelow(ctx, rel, false, n.add)
}

// add watches one folder.
func (n *notifier) add(rel string) error {
	full := filepath.Join(n.e.opt.Root, rel)
	if n.e.opt.limit > 0 && len(n.dirs) >= n.e.opt.limit {
		return &limitError{len(n.dirs), syscall.ENOSPC}
	}
	if ino, ok := n.dirs[rel]; ok {
		if s, there := n.e.stat(rel); there && s.Ino == ino {
			return nil
		}
		// Another folder is there now. fsnotify must have forgotten the old one
		// before: adding a path that it knows, for a folder that it knows by
		// another name, leaves the path without a watch, and Remove panics on
		// that (1.10.1).
		for _, moved := range n.drop(rel, false) {
			n.push(job{rel: moved})
		}
	}
	if err := n.w.Add(full); err != nil {
		if isLimit(err) {
			return &limitError{len(n.dirs), err}
		}
		return nil // gone meanwhile, or not readable
	}
	st, err := n.e.lstat(rel)
	if err != nil || !st.IsDir() { // a link came into its place, and was followed
		_ = n.w.Remove(full)
		return nil
	}
	n.dirs[rel], n.where[inode(st)] = inode(st), rel
	return nil
}

// drop removes a folder's watch. If the folder was moved it removes the watches
// below it too, which would report paths that no longer exist. A watch belongs
// to the folder, not to the name, so a folder that was found under its new name
// before has now lost its watch: drop returns it, to be watched again.
func (n *notifier) drop(rel string, moved bool) (again []string) {
	gone := []string{rel}
	if moved {
		for d := range n.dirs {
			if strings.HasPrefix(d, rel+"/") {
				gone = append(gone, d)
			}
		}
	}
	for _, d := range gone {
		ino := n.dirs[d]
		delete(n.dirs, d)
		_ = n.w.Remove(filepath.Join(n.e.opt.Root, d)) // it may have gone by itself
		switch now := n.where[ino]; {
		case now == d:
			delete(n.where, ino)
		case now != "":
			_ = n.w.Remove(filepath.Join(n.e.opt.Root, now))
			delete(n.dirs, now)
			again = append(again, now)
		}
	}
	return again
}
