package codeexec

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/session"
	"github.com/seed-2d964004/superqode/workspace"
)

// Registry hands out workspaces by id. The id is the name of a session, of which there is
// one open at a time, so that processes with registries of their own share workspaces.
type Registry struct {
	// These are set before the first Acquire. Env gives each program variables that neither
	// it nor its session has; an error keeps the program from starting.
	Env  func(ctx context.Context) (map[string]string, error)
	Init []InitHook // in their order
	// Tracer gets a span for each thing that is done; nil: none. events.jsonl has them in any
	// case, one JSON object a line, and becomes an artifact of the session's when it is released.
	Tracer trace.Tracer

	sessions *session.Manager
	origin   string
	open     session.OpenOptions

	mu   sync.Mutex
	made map[string]*making
}

// making is one workspace that is made, or was: done is closed when ws and err hold.
type making struct {
	done chan struct{}
	ws   *Workspace
	err  error
}

// NewRegistry returns the registry of the sessions of one directory, open.Dir. Each is opened
// with the options, whose Mode is superqode.ModeDirectory for workspaces that are empty at
// first; the Name is the workspace's id.
func NewRegistry(sessions *session.Manager, open session.OpenOptions) *Registry {
	return &Registry{sessions: sessions, origin: open.Dir, open: open, made: map[string]*making{}}
}

// Acquire returns the workspace of an id and makes it if there is none: once, however many
// callers and processes ask. A caller whose ctx ends returns at once and takes nothing from
// the others; a failure is returned to all who waited for it, and the next call tries again.
func (r *Registry) Acquire(ctx context.Context, id string) (*Workspace, error) {
	if id == "" || !utf8.ValidString(id) { // no record of a session could hold it
		return nil, superqode.Errorf(superqode.ErrUsage, "id: %q is empty or not UTF-8", id)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if mode.Of(r.open.Mode).Mounted {
		return nil, superqode.Errorf(superqode.ErrUsage, "mode: only its programs see the workspace of a session in mode %s", r.open.Mode)
	}
	r.mu.Lock()
	m, there := r.made[id]
	if !there {
		m = &making{done: make(chan struct{})}
		r.made[id] = m
		go r.make(context.WithoutCancel(ctx), id, m)
	}
	r.mu.Unlock()
	select {
	case <-m.done:
		return m.ws, m.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Registry) make(ctx context.Context, id string, m *making) {
	ctx, cancel := context.WithTimeout(ctx, maxMaking)
	defer cancel()
	unlock, err := lockDir(ctx, r.origin) // between the look and the making, a session is there that nobody can attach to yet
	if m.err = err; err == nil {
		m.ws, m.err = r.find(ctx, id)
		m.err = errors.Join(m.err, unlock())
	}
	if m.err != nil {
		m.err = fmt.Errorf("workspace %s: %w", id, m.err)
		r.mu.Lock()
		delete(r.made, id)
		r.mu.Unlock()
	}
	close(m.done)
}

// maxMaking bounds how long a workspace is waited for that another process makes, and
// lookAgain is how often.
const (
	maxMaking = 5 * time.Minute
	lookAgain = 20 * time.Millisecond
)

// find attaches to the open session of that name, or opens one. Two processes that open one
// at once meet in the session's claim of its name: one of them looks again.
func (r *Registry) find(ctx context.Context, id string) (*Workspace, error) {
	for {
		there, err := r.named(ctx, id)
		if err != nil {
			return nil, err
		}
		if there == nil {
			opt := r.open
			opt.Name = id
			made, err := r.sessions.Open(ctx, opt)
			if err == nil { // who opens a session has it alone, and others are to share it
				err = made.Close()
			}
			if err != nil {
				if there, lerr := r.named(ctx, id); there == nil || lerr != nil {
					return nil, errors.Join(err, lerr)
				}
			}
			continue
		}
		s, err := r.sessions.Attach(ctx, r.origin, there.ID.String())
		if err == nil {
			dir, err := workspace.Open(s.Workspace())
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
			_, err = EnsureLayout(dir)
			if err != nil {
				return nil, errors.Join(err, dir.Close(), s.Close())
			}
			beside := func(ctx context.Context) (*session.Session, error) {
				return r.sessions.Attach(ctx, r.origin, there.ID.String())
			}
			w := &Workspace{ID: id, Dir: dir, s: s, session: there.ID, origin: r.origin, beside: beside, provide: r.Env, tracer: r.Tracer, events: filepath.Join(s.Folder(), EventsFile),
				able: Capabilities{Kernel: s.Kernel(), Network: !r.open.NoNetwork, Interactive: true, Persistent: true}}
			_, end := w.span(ctx, spanCreate)
			err = r.prepare(ctx, w)
			end(err)
			if err != nil {
				return nil, err
			}
			return w, nil
		}
		if !errors.Is(err, superqode.ErrLocked) {
			return nil, err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// named is the open session of a name. One whose process died is recovered first, and where
// nobody works, what a process that was killed left running is ended.
func (r *Registry) named(ctx context.Context, id string) (*session.Info, error) {
	list, err := r.sessions.List(ctx, r.origin)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Name != id || l.State.Ended() {
			continue
		}
		if l.Alive {
			return &l, nil
		}
		if _, err := r.sessions.Recover(ctx, r.origin, l.ID.String()); err != nil {
			return nil, err
		}
		if !l.Dead {
			return &l, nil
		}
	}
	return nil, nil
}

// Release ends the session of a workspace, whose directory is removed. It is
// superqode.ErrLocked while another process has the workspace.
func (r *Registry) Release(ctx context.Context, id string) error {
	w, err := r.take(ctx, id)
	if err != nil {
		return err
	}
	if err := w.end(ctx); err != nil {
		return err
	}
	return undo(ctx, r.Init, w)
}

// Close lets go of a workspace and leaves it to others.
func (r *Registry) Close(ctx context.Context, id string) error {
	w, err := r.take(ctx, id)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err = errors.Join(w.s.Close(), w.Dir.Close())
	w.s = nil
	return err
}

// take takes a workspace out of the registry.
func (r *Registry) take(ctx context.Context, id string) (*Workspace, error) {
	w, err := r.Acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.made[id]; m != nil {
		select {
		case <-m.done:
			if m.ws == w {
				delete(r.made, id)
				return w, nil
			}
		default: // somebody has acquired it again already
		}
	}
	return nil, superqode.Errorf(superqode.ErrNotFound, "workspace %s: somebody else released it", id)
}

// IsRetrySafe reports whether the same call may succeed later and did nothing now: the
// session is held by another process.
func IsRetrySafe(err error) bool { return errors.Is(err, superqode.ErrLocked) }
