package program

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/watch"
)

// WatchOptions returns how the workspace is watched.
func WatchOptions(s *site.Site) watch.Options {
	r, ignore := &s.Rec, []string{".git"}
	if mode.Of(r.Mode).InPlace {
		ignore = append(ignore, ".superqode")
	}
	return watch.Options{Root: s.WorkDir(), Ignore: append(ignore, r.Watcher.Ignore...),
		Debounce: r.Watcher.Debounce}
}

const (
	// watchAfter is how long a program must run to be watched: one that is done
	// before that must not wait for anything.
	WatchAfter = 20 * time.Millisecond
	// maxWatched is how many paths are remembered.
	maxWatched = 100_000
)

// watching watches during one run. Its goroutine starts after a moment, and what
// goes wrong there goes wrong for nobody else.
type watching struct {
	Cancel context.CancelFunc
	Done   chan struct{}
	First  map[string]time.Time // read it after close

	mu     sync.Mutex
	warned []string
}

// StartWatching begins to watch, or returns nil where that is not wanted.
func (s *Program) StartWatching() *watching {
	if !s.Rec.Watcher.Enabled {
		return nil
	}
	opt := WatchOptions(s.Site)
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{Cancel: cancel, Done: make(chan struct{}), First: map[string]time.Time{}}
	base, file := s.Base, filepath.Join(s.Folder, "base.snap")
	opt.Warn = w.warn
	go func() {
		defer close(w.Done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(WatchAfter):
		}
		if base == nil {
			base, _ = snapshot.Load(file) // without one all that is there counts as known
		}
		if base != nil {
			opt.Baseline = baseline{base}
		}
		w.run(ctx, opt)
	}()
	return w
}

func (w *watching) warn(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warned = append(w.warned, line)
}

func (w *watching) run(ctx context.Context, opt watch.Options) {
	watcher, err := watch.Start(ctx, opt)
	if err != nil {
		if ctx.Err() == nil {
			w.warn("the workspace is not watched: " + err.Error())
		}
		return
	}
	for e := range watcher.Events() {
		for _, p := range []string{e.Path, e.Old} {
			if _, seen := w.First[p]; p != "" && !seen && len(w.First) < maxWatched {
				w.First[p] = e.At
			}
		}
	}
}

// close ends the watching and keeps the times. A nil one was never begun.
func (s *Program) StopWatching(w *watching) error {
	if w == nil {
		return nil
	}
	w.Cancel()
	<-w.Done
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.warned {
		s.Warn(line)
	}
	if len(w.First) == 0 {
		return nil
	}
	if s.Watched == nil {
		s.Watched = map[string]time.Time{}
	}
	for p, at := range w.First {
		if _, seen := s.Watched[p]; !seen {
			s.Watched[p] = at.UTC().Truncate(time.Millisecond)
		}
	}
	if s.Rec.Owned && s.Rec.Parent.IsZero() && s.As.IsZero() {
		return nil // this value ends the session, too
	}
	seen, err := mode.ReadSeen(s.Site)
	if err != nil {
		return err
	}
	for p, at := range s.Watched {
		if _, known := seen[p]; !known {
			seen[p] = at
		}
	}
	return mode.WriteSeen(s.Site, seen)
}

// baseline is a session's base as the watcher asks for it.
type baseline struct{ s *snapshot.Snapshot }

// Find returns what a path was.
func (b baseline) Find(path string) (watch.Stamp, bool) {
	e := b.s.Find(superqode.RelPath(path))
	if e == nil {
		return watch.Stamp{}, false
	}
	return stampOf(e), true
}

// Below lists a folder's contents.
func (b baseline) Below(dir string, yield func(string, watch.Stamp)) {
	list := b.s.Below(superqode.RelPath(dir))
	for i := range list {
		yield(string(list[i].Path), stampOf(&list[i]))
	}
}

func stampOf(e *snapshot.Entry) watch.Stamp {
	s := watch.Stamp{Mode: fs.FileMode(e.Perm & 0o777), Ino: e.Stat.Ino, Size: e.Size, Mtime: e.Stat.Mtime}
	for bit, mode := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if e.Perm&bit != 0 {
			s.Mode |= mode
		}
	}
	switch e.Kind {
	case snapshot.Dir:
		s.Mode |= fs.ModeDir
		s.Size, s.Mtime = 0, 0
	case snapshot.Link:
		s.Mode |= fs.ModeSymlink
	case snapshot.File:
	default:
		s.Mode |= fs.ModeIrregular // of a special file only that it is there counts
	}
	return s
}

// sidecar is what goes on next to one run of a program and ends with it: its
// agent's claims, and the watching.
type sidecar struct {
	s      *Program
	claims *coordinator.Handler
	watch  *watching
}

func (s *Program) openSidecar(opt ExecOptions) *sidecar {
	b := &sidecar{s: s, claims: s.claims()}
	if !opt.Setup {
		b.watch = s.StartWatching()
	}
	return b
}

func (b *sidecar) handlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	return b.claims.AddTo(m)
}

func (b *sidecar) close(ctx context.Context) error {
	return errors.Join(b.claims.Close(ctx), b.s.StopWatching(b.watch))
}

// claims is what a program of the session may ask for.
func (s *Program) claims() *coordinator.Handler {
	id := s.PublicID()
	place := coordinator.Place{Project: s.Project.Dir, Session: id, Folder: s.Project.SessionPath(id.String()),
		Base: s.ClaimBase()}
	return place.Handle(s.Actor(), s.Folder)
}

func (s *Program) ClaimBase() *coordinator.Base {
	own := &site.Site{Host: s.Host, Project: s.Project, Source: s.Source, Folder: s.Folder, Rec: s.Rec,
		Distrusted: s.Distrusted}
	b := &coordinator.Base{Workspace: s.WorkDir(), List: filepath.Join(s.Folder, "base.snap"),
		Snapshot: s.Base, Open: func(ctx context.Context) (*store.Store, error) {
			err := own.OpenStore(ctx)
			return own.Store, err
		}}
	if mode.Of(s.Rec.Mode).InPlace {
		b.Asides = []string{filepath.Join(s.AsideDir(), "tree")}
	}
	if s.Rec.Overlay != nil {
		b.Asides = s.Rec.Overlay.Lowers()
	}
	return b
}
