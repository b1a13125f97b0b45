package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Config is what a Manager works with.
type Config struct {
	Home     string         // $SUPERQODE_HOME, absolute
	Env      []string       // the caller's whole environment
	Log      zerolog.Logger // ids, counts and durations only
	Warn     func(string)   // shows one line to the person at the terminal; nil drops it
	Progress Progress       // shows them what takes long; nil shows nothing
	Version  string         // for reports
	Shim     string         // the helper binary that guards; "" finds it beside this program
}

// Manager opens, finds and ends the sessions of one SUPERQODE_HOME.
type Manager struct {
	cfg Config
	now func() time.Time

	gitOnce sync.Mutex
	gitBin  *git.Git // found when first needed

	touched []state.Project // whose trash Tidy looks at
}

// NewManager prepares a Manager and touches nothing.
func NewManager(cfg Config) *Manager {
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	return &Manager{cfg: cfg, now: time.Now}
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

// origin is the user's repository or directory as one command sees it.
type origin struct {
	Top    string    // the work tree's root, or the directory; absolute, links resolved
	Prefix string    // from Top to where the command was started: "" or "a/b"
	Repo   *git.Repo // nil outside git
	Format string    // object format
}

// key is the path that names the project: the git common dir, so that all
// worktrees of a repository share one store, or the directory.
func (o *origin) key() string {
	if o.Repo != nil {
		return o.Repo.CommonDir
	}
	return o.Top
}

// baseName is the readable half of the project's folder name.
func (o *origin) baseName() string {
	if o.Repo == nil {
		return filepath.Base(o.Top)
	}
	if filepath.Base(o.Repo.CommonDir) == ".git" {
		return filepath.Base(filepath.Dir(o.Repo.CommonDir))
	}
	return filepath.Base(o.Repo.CommonDir)
}

// resolveOrigin finds the repository that dir lies in, or the directory itself.
func (m *Manager) resolveOrigin(ctx context.Context, dir string) (*origin, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, notFoundOr(err, dir)
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, err
	}
	if st, err := os.Stat(real); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a directory", dir)
	}
	repo, err := m.discover(ctx, real)
	if errors.Is(err, git.ErrNoRepository) {
		return &origin{Top: real, Format: "sha1"}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &origin{Top: repo.TopLevel, Prefix: strings.TrimSuffix(repo.Prefix, "/"), Repo: repo, Format: repo.ObjectFormat}
	if repo.Bare {
		o.Top = repo.GitDir
	}
	return o, nil
}

// discover asks git for the repository and for its version at the same time.
func (m *Manager) discover(ctx context.Context, dir string) (*git.Repo, error) {
	m.gitOnce.Lock()
	defer m.gitOnce.Unlock()
	if m.gitBin != nil {
		return m.gitBin.Discover(ctx, dir)
	}
	g, err := git.Locate(m.cfg.Env)
	if err != nil {
		return nil, err
	}
	version := make(chan error, 1)
	go func() { version <- g.CheckVersion(ctx) }()
	repo, err := g.Discover(ctx, dir)
	if verr := <-version; verr != nil {
		return nil, verr // an old git's answer to anything else explains less
	}
	m.gitBin = g
	return repo, err
}

func notFoundOr(err error, path string) error {
	if errors.Is(err, os.ErrNotExist) {
		return superqode.Errorf(superqode.ErrNotFound, "%s does not exist", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// checkHome refuses a home inside the origin: the program would find its own
// session's state in its reach, and each session would copy all the others.
func (m *Manager) checkHome(o *origin) error {
	home := superqode.RealPrefix(m.cfg.Home)
	for _, dir := range []string{o.Top, o.key()} {
		if home == dir || strings.HasPrefix(home, dir+string(filepath.Separator)) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "SUPERQODE_HOME %s lies inside the origin %s", m.cfg.Home, dir),
				"superqode --home DIR … with a folder outside of it, or unset SUPERQODE_HOME")
		}
	}
	return nil
}
