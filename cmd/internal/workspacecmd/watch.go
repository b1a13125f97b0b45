package workspacecmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/watch"
)

// Watch tells of changes as they happen.
type Watch struct {
	app.SessionFlag
	Debounce time.Duration `placeholder:"DUR" help:"Report a path once it has been quiet for DUR (default: workspace.watcher.debounce_ms)."`
	Ignore   []string      `placeholder:"PATTERN" sep:"none" help:"Ignore paths that match, in addition to workspace.watcher.ignore_patterns (repeatable)."`
	Poll     time.Duration `placeholder:"DUR" help:"Scan every DUR instead of using the system's notifications."`
	Path     string        `arg:"" optional:"" name:"path" sep:"none" help:"Watch only this file or folder (default: the whole repository or workspace)."`
}

// watchJSON is one line of the stream.
type watchJSON struct {
	SchemaVersion int        `json:"schema_version"`
	Type          watch.Type `json:"type"`
	Path          string     `json:"path"`
	PathBytes     string     `json:"path_bytes,omitempty"`
	OldPath       string     `json:"old_path"`
	OldPathBytes  string     `json:"old_path_bytes,omitempty"`
	Dir           bool       `json:"dir"`
	At            time.Time  `json:"at"`
}

// watched is what a watchCmd looks at.
type watched struct {
	opt     watch.Options
	below   string // only this path, relative to the root; "": all
	session *state.Listed
	site    *site.Site // of the session: it keeps a mount open
	manager *life.Manager
}

// watchGCPercent keeps what is no longer used below a fifth of what is: a
// repository of 30,000 folders is watched in less than 60 MiB.
const watchGCPercent = 20

// Run prints a line for each event until the end.
func (c *Watch) Run(ctx context.Context, a *app.App) error {
	w, err := c.what(ctx, a)
	if err != nil {
		return err
	}
	// It lives for long and does little: memory is worth more than time.
	defer debug.SetGCPercent(debug.SetGCPercent(watchGCPercent))
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watcher, err := watch.Start(inner, w.opt)
	if err != nil {
		return superqode.Errorf(superqode.ErrUsage, "watch: %v", err)
	}
	root := w.opt.Root
	if w.site != nil {
		root = string(w.site.Rec.Inside())
	}
	a.Note("watching %s", text.QuotePath(filepath.Join(root, w.below)))
	if w.session != nil {
		go w.untilEnd(inner, cancel)
	}
	var werr error
	for e := range watcher.Events() {
		if werr != nil || !w.concerns(e) {
			continue
		}
		if werr = printEvent(a, e); werr != nil {
			cancel(werr)
		}
	}
	switch err := watcher.Err(); {
	case werr != nil:
		return werr
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(inner), errSessionEnded):
		return nil
	case errors.Is(err, watch.ErrRootGone) && w.session == nil:
		return superqode.Errorf(superqode.ErrNotFound, "%s is gone", text.Printable(w.opt.Root))
	case !errors.Is(err, watch.ErrRootGone):
		return err
	}
	return nil // with the session's workspace
}

var errSessionEnded = errors.New("the session has ended")

// untilEnd looks from time to time whether the session is still there.
func (w *watched) untilEnd(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
		l, err := w.manager.Find(ctx, string(w.session.Origin), w.session.ID.String())
		if ctx.Err() == nil && (errors.Is(err, superqode.ErrNotFound) || err == nil && (l.State.Ended() || l.Dead)) {
			cancel(errSessionEnded)
			return
		}
	}
}

// what decides what to watch.
func (c *Watch) what(ctx context.Context, a *app.App) (*watched, error) {
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	set := cfg.Workspace.Watcher
	root := app.OriginDir(a.Flags.Repo)
	w := &watched{opt: watch.Options{Root: root, Ignore: set.IgnorePatterns, Debounce: set.Debounce}}
	if c.Ref(a) != "" {
		if w.session, err = c.Find(ctx, a); err != nil {
			return nil, err
		}
		if w.session.State.Ended() && w.session.State != superqode.StatePreserved {
			return nil, superqode.Errorf(superqode.ErrNotFound, "session %s has ended", w.session.ID)
		}
		w.manager = a.Manager
		w.site = a.Manager.At(*w.session)
		w.opt = program.WatchOptions(w.site)
	}
	if c.Path != "" {
		if err := w.only(a, c.Path); err != nil {
			return nil, err
		}
	}
	w.opt.Ignore = append(append([]string{".superqode"}, w.opt.Ignore...), c.Ignore...)
	w.opt.Poll, w.opt.Warn = c.Poll, a.Warn
	if c.Debounce > 0 {
		w.opt.Debounce = c.Debounce
	}
	return w, nil
}

// only restricts what is reported. A folder outside of the repository is
// watched by itself.
func (w *watched) only(a *app.App, path string) error {
	if w.session != nil {
		paths, err := w.session.Pathspecs(a.Flags.Repo, []string{path})
		if err == nil && len(paths) > 0 {
			w.below = paths[0]
		}
		return err
	}
	named := filepath.Clean(superqode.Under(a.Flags.Repo, path))
	dir, err := filepath.EvalSymlinks(filepath.Dir(named))
	if err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "%s: %v", text.Printable(path), err)
	}
	full := filepath.Join(dir, filepath.Base(named))
	rel, err := filepath.Rel(w.opt.Root, full)
	if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		if rel != "." {
			w.below = rel
		}
		if _, err := os.Lstat(full); err != nil {
			a.Warn(text.Printable(path) + " does not exist yet")
		}
		return nil
	}
	st, err := os.Stat(full)
	if err != nil || !st.IsDir() {
		return superqode.Errorf(superqode.ErrNotFound, "%s is no folder", text.Printable(path))
	}
	w.opt.Root = full
	return nil
}

func (w *watched) concerns(e watch.Event) bool {
	in := func(p string) bool { return superqode.Within(p, w.below) }
	return w.below == "" || in(e.Path) || e.Old != "" && in(e.Old)
}

func printEvent(a *app.App, e watch.Event) error {
	if a.Flags.JSON {
		j := watchJSON{SchemaVersion: 1, Type: e.Type, Dir: e.Dir, At: e.At.UTC()}
		j.Path, j.PathBytes = superqode.JSONPath(e.Path)
		j.OldPath, j.OldPathBytes = superqode.JSONPath(e.Old)
		return a.PrintLine(j)
	}
	name := func(p string) string {
		if e.Dir {
			p += "/"
		}
		return text.QuotePath(p)
	}
	path := name(e.Path)
	if e.Old != "" {
		path = name(e.Old) + " → " + path
	}
	return a.Line("%s %-8s %s", e.At.Local().Format("15:04:05.000"), e.Type, path)
}
