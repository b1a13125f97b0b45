package life

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Config is what a Manager works with.
type Config struct {
	Home     string         // $SUPERQODE_HOME, absolute
	Env      []string       // the caller's whole environment
	Log      zerolog.Logger // ids, counts and durations only
	Warn     func(string)   // shows one line to the person at the terminal; nil drops it
	Progress site.Progress  // shows them what takes long; nil shows nothing
	Version  string         // for reports
	Program  string         // superqode's own binary, which a session's programs call and detached runs are given to; "": none
	Shim     string         // the helper binary that guards; "" finds it beside this program

	ExitCode func(error) int // what the process exits with for an error; nil: program.ExitCode
}

// Manager opens, finds and ends the sessions of one SUPERQODE_HOME.
type Manager struct {
	*site.Host
	touched gc.Touched
}

// NewManager prepares a Manager and touches nothing.
func NewManager(cfg Config) *Manager {
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	if cfg.ExitCode == nil {
		cfg.ExitCode = program.ExitCode
	}
	return &Manager{Host: &site.Host{Home: cfg.Home, Env: cfg.Env, Log: cfg.Log, Tell: cfg.Warn, Progress: cfg.Progress, Version: cfg.Version, Self: cfg.Program, Shim: cfg.Shim, Now: time.Now, ExitCode: cfg.ExitCode}}
}

// HomeDir decides where superqode keeps its state: the flag, SUPERQODE_HOME, or
// .superqode in HOME. The result is absolute.
func HomeDir(flag string, env []string) (string, error) {
	home := flag
	if home == "" {
		home = superqode.Getenv(env, "SUPERQODE_HOME")
	}
	if home == "" {
		user := superqode.Getenv(env, "HOME")
		if user == "" {
			return "", superqode.WithHint(errors.New("neither HOME nor SUPERQODE_HOME is set, so there is no place for superqode's state"), "superqode --home /path/to/state …")
		}
		home = filepath.Join(user, ".superqode")
	}
	return filepath.Abs(home)
}

// checkHome refuses a home inside the origin: the program would find its own
// session's state in its reach, and each session would copy all the others.
func checkHome(h *site.Host, o *site.Origin) error {
	home := superqode.RealPrefix(h.Home)
	for _, dir := range []string{o.Top, o.Key()} {
		if home == dir || strings.HasPrefix(home, dir+string(filepath.Separator)) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "SUPERQODE_HOME %s lies inside the origin %s", h.Home, dir),
				"superqode --home DIR … with a folder outside of it, or unset SUPERQODE_HOME")
		}
	}
	return nil
}

// Collector cleans up this home.
func (m *Manager) Collector() *gc.Collector {
	return &gc.Collector{
		Host: m.Host,
		Recover: func(ctx context.Context, l state.Listed) (string, bool, error) {
			r := m.recoverOne(ctx, l)
			return r.Action, r.Action == endWord(true), r.Err
		},
		Keeps: func(l state.Listed) bool {
			return l.State != superqode.StateCreated && keeps(&l.Record, EndOptions{Failed: programFailed(&l.Record)}, true)
		},
		Dispose: func(ctx context.Context, a attach.Alone, d mode.Disposal, force bool) error {
			return (&Session{Attached: a.Attached, m: m}).dispose(ctx, a, d, force)
		},
	}
}

// Tidy deletes what this command, or an interrupted one before it, left in the
// trash. Call it after the command's result was printed.
func (m *Manager) Tidy(ctx context.Context) error { return m.touched.Tidy(ctx, m.Host) }

// AllowOnce lets one operation of a session's program through, once; see
// layers.AllowOnce. The error wraps superqode.ErrNotFound where ref names no session.
func (m *Manager) AllowOnce(ctx context.Context, dir, ref string, op guard.Operation) (superqode.SessionID, error) {
	l, err := m.find(ctx, dir, ref)
	if err != nil {
		return superqode.SessionID{}, err
	}
	return l.ID, layers.AllowOnce(ctx, l, op, m.Now())
}

// Claims returns the claims of the origin around dir. ref may name a session, or
// be "": then the claims are made outside of any. Nothing is made on disk.
func (m *Manager) Claims(ctx context.Context, dir, ref string) (*coordinator.Claims, error) {
	if ref != "" {
		l, err := m.find(ctx, dir, ref)
		if err != nil {
			return nil, err
		}
		s := m.session(l)
		place := coordinator.Place{Project: s.Project.Dir, Root: s.WorkDir(), Session: l.ID, Folder: s.Folder, Base: s.ClaimBase()}
		place.Ready = func(context.Context) error {
			if s.Rec.State == superqode.StateDone {
				return mode.Ended(s.Site)
			}
			return nil
		}
		return place.Open(), nil
	}
	p, err := registry.Locate(ctx, m.Host, dir)
	if err != nil {
		return nil, err
	}
	top, err := claimRoot(dir)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		if p.Exists() {
			return nil
		}
		o, err := m.Resolve(ctx, top)
		if err != nil {
			return err
		}
		if err := checkHome(m.Host, o); err != nil {
			return err
		}
		return p.Create(o.Key(), m.Now())
	}
	return coordinator.Place{Project: p.Dir, Root: top, Ready: ready}.Open(), nil
}

// claimRoot returns the root of the work tree around dir, or the directory that
// is an origin of its own.
func claimRoot(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", site.NotFoundOr(err, dir)
	}
	for d := real; ; d = filepath.Dir(d) {
		if registry.CommonDirOf(d) != "" {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return real, nil
		}
	}
}
