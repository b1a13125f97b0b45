package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Host is what the sessions of one SUPERQODE_HOME share: where state lies, whose
// environment is passed on, git, the clock, and the person at the terminal.
type Host struct {
	Home     string         // $SUPERQODE_HOME, absolute
	Dir      string         // the folder that the command is about; "" for none
	Env      []string       // the caller's whole environment
	Log      zerolog.Logger // ids, counts and durations only
	Tell     func(string)   // shows one line to the person at the terminal
	Progress Progress       // shows them what takes long; nil shows nothing
	Version  string         // for reports
	Self     string         // superqode's own binary; "" where this process is another program
	Shim     string         // the helper binary that guards; "" finds it beside this program
	Now      func() time.Time
	ExitCode func(error) int // of a session whose program never ran

	gitOnce sync.Mutex
	gitBin  *git.Git // found when first needed
}

// Origin is the user's repository or directory as one command sees it.
type Origin struct {
	Top    string    // the work tree's root, or the directory; absolute, links resolved
	Prefix string    // from Top to where the command was started: "" or "a/b"
	Repo   *git.Repo // nil outside git
	Format string    // object format
}

// Key is the path that names the project: the git common dir, so that all
// worktrees of a repository share one store, or the directory.
func (o *Origin) Key() string {
	if o.Repo != nil {
		return o.Repo.CommonDir
	}
	return o.Top
}

// BaseName is the readable half of the project's folder name.
func (o *Origin) BaseName() string {
	if o.Repo == nil {
		return filepath.Base(o.Top)
	}
	if filepath.Base(o.Repo.CommonDir) == ".git" {
		return filepath.Base(filepath.Dir(o.Repo.CommonDir))
	}
	return filepath.Base(o.Repo.CommonDir)
}

// Resolve finds the repository that dir lies in, or the directory itself.
func (h *Host) Resolve(ctx context.Context, dir string) (*Origin, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, NotFoundOr(err, dir)
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, err
	}
	if st, err := os.Stat(real); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a directory", dir)
	}
	repo, err := h.Discover(ctx, real)
	if errors.Is(err, git.ErrNoRepository) {
		return &Origin{Top: real, Format: "sha1"}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &Origin{Top: repo.TopLevel, Prefix: strings.TrimSuffix(repo.Prefix, "/"), Repo: repo, Format: repo.ObjectFormat}
	if repo.Bare {
		o.Top = repo.GitDir
	}
	return o, nil
}

// Discover finds the repository that dir lies in, and git with its version the
// first time.
func (h *Host) Discover(ctx context.Context, dir string) (*git.Repo, error) {
	h.gitOnce.Lock()
	defer h.gitOnce.Unlock()
	g := h.gitBin
	if g == nil {
		var err error
		if g, err = h.locate(); err != nil {
			return nil, err
		}
	}
	repo, err := g.Discover(ctx, dir)
	if g.Version != (git.Version{}) {
		h.gitBin = g
	}
	return repo, err
}

// NotFoundOr says of a path that could not be opened why: the error wraps
// superqode.ErrNotFound when nothing is there.
func NotFoundOr(err error, path string) error {
	if errors.Is(err, os.ErrNotExist) {
		return superqode.Errorf(superqode.ErrNotFound, "%s does not exist", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// Progress reports a step that may take long: what is done, in words, and the
// meter that counts it, if there is one. It returns a function that ends the
// step.
type Progress func(step string, meter *treecopy.Meter) (done func())

// Begin tells the person at the terminal that a step begins, and the log that it ended.
func (h *Host) Begin(step string, meter *treecopy.Meter) (done func()) {
	began, shown := h.Now(), func() {}
	if h.Progress != nil {
		shown = h.Progress(step, meter)
	}
	return func() {
		shown()
		h.Log.Debug().Dur("took", h.Now().Sub(began)).Msg(step)
	}
}

// Git finds git once.
func (h *Host) Git(ctx context.Context) (*git.Git, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	h.gitOnce.Lock()
	defer h.gitOnce.Unlock()
	if h.gitBin != nil {
		return h.gitBin, nil
	}
	g, err := h.locate() // its version was looked at when the session was opened
	h.gitBin = g
	return g, err
}

// locate finds git where no session's program could have put one.
func (h *Host) locate() (*git.Git, error) {
	g, err := git.Locate(h.Env, h.Avoid()...)
	if g != nil {
		g.Trace = func(args []string, took time.Duration, err error) {
			h.Log.Debug().Strs("args", args).Dur("took", took).Err(err).Msg("git")
		}
	}
	return g, err
}

// Avoid lists the folders that no program of PATH is taken from: where the command is
// about, superqode's own state, and every known origin with its linked worktrees.
func (h *Host) Avoid() []string {
	avoid := []string{h.WorkingPath(), git.Top(h.Dir)}
	names, _ := state.Names(h.WorkingPath()) // none that can be read, none to avoid
	for _, name := range names {
		if key, err := (state.Project{Dir: filepath.Join(h.WorkingPath(), name)}).Key(); err == nil {
			linked, _ := state.Names(filepath.Join(key, "worktrees"))
			for _, name := range linked {
				if dotGit, err := os.ReadFile(filepath.Join(key, "worktrees", name, "gitdir")); err == nil {
					avoid = append(avoid, filepath.Dir(strings.TrimSpace(string(dotGit))))
				}
			}
			if filepath.Base(key) == ".git" {
				key = filepath.Dir(key)
			}
			avoid = append(avoid, key)
		}
	}
	return avoid
}

// CheckedGit is git for what depends on its version.
func (h *Host) CheckedGit(ctx context.Context) (*git.Git, error) {
	g, err := h.Git(ctx)
	if err != nil {
		return nil, err
	}
	h.gitOnce.Lock()
	defer h.gitOnce.Unlock()
	if g.Version == (git.Version{}) {
		err = g.CheckVersion(ctx)
	}
	return g, err
}

func (h *Host) WorkingPath() string { return filepath.Join(h.Home, "working") }

// ProjectOf returns the folder of an origin, which need not exist yet.
func (h *Host) ProjectOf(o *Origin) state.Project {
	return state.Of(h.WorkingPath(), o.BaseName(), o.Key())
}

// ExistingStore opens a project's store as it is; it is nil where there is none.
func (h *Host) ExistingStore(ctx context.Context, p state.Project) (*store.Store, error) {
	g, err := h.Git(ctx)
	if err != nil {
		return nil, err
	}
	store, err := store.OpenExisting(g, p.StorePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return store, err
}

// For returns a Host whose lines for the person name the agent that they are
// about.
func (h *Host) For(agent superqode.AgentID) *Host {
	h.gitOnce.Lock()
	defer h.gitOnce.Unlock()
	return &Host{
		Home: h.Home, Dir: h.Dir, Env: h.Env, Log: h.Log, Version: h.Version, Self: h.Self, Shim: h.Shim, Now: h.Now, gitBin: h.gitBin,
		Tell: func(line string) { h.Tell(agent.String() + ": " + line) }, // no Progress: several at a time have no one line to share
	}
}

// At returns the site of a session that exists. It takes no lock and reads nothing.
func (h *Host) At(l state.Listed) *Site {
	return &Site{
		Host: h, Project: state.Project{Dir: filepath.Dir(filepath.Dir(l.Dir))}, Folder: l.Dir, Rec: l.Record,
		Source: &Origin{Top: string(l.Origin), Prefix: string(l.Prefix), Format: l.ObjectFormat},
	}
}
