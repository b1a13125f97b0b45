package session

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
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
	Shim     string         // the helper binary that guards; "" finds it beside this program
}

// Manager opens, finds and ends the sessions of one SUPERQODE_HOME.
type Manager struct {
	*site.Host
	touched []state.Project // whose trash Tidy looks at
}

// NewManager prepares a Manager and touches nothing.
func NewManager(cfg Config) *Manager {
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	return &Manager{Host: &site.Host{Home: cfg.Home, Env: cfg.Env, Log: cfg.Log, Tell: cfg.Warn, Progress: cfg.Progress, Version: cfg.Version, Shim: cfg.Shim, Now: time.Now}}
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
func (m *Manager) checkHome(o *site.Origin) error {
	home := superqode.RealPrefix(m.Home)
	for _, dir := range []string{o.Top, o.Key()} {
		if home == dir || strings.HasPrefix(home, dir+string(filepath.Separator)) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "SUPERQODE_HOME %s lies inside the origin %s", m.Home, dir),
				"superqode --home DIR … with a folder outside of it, or unset SUPERQODE_HOME")
		}
	}
	return nil
}
