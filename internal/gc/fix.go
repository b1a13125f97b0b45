package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Finding is something that an interrupted command, or somebody's hand, left in
// the home, and what was done about it.
type Finding struct {
	What string // one line
	Done string // what was done; "" when Fix only looked
	Err  error  // why it could not be put right
}

// Fix looks through the whole home for what is not as it should be and, unless
// dryRun is set, puts it right: permissions, sessions that died, workspaces that
// lost their session, sockets that nobody listens on, trash. Sessions that live
// are left alone. What a session holds is salvaged before it is removed.
func (g *Collector) Fix(ctx context.Context, dryRun bool) ([]Finding, error) {
	f := &fixer{Collector: g, dryRun: dryRun}
	f.permissions(g.Home, g.WorkingPath())
	projects, err := registry.Projects(ctx, g.Host, "", true)
	if err != nil {
		return f.list, err
	}
	slices.SortFunc(projects, func(a, b state.Project) int { return strings.Compare(a.Dir, b.Dir) })
	for _, p := range projects {
		if ctx.Err() != nil {
			return f.list, context.Cause(ctx)
		}
		if p.Exists() {
			f.permissions(p.Dir, p.SessionsPath(), p.StorePath())
			f.project(ctx, p)
		}
	}
	return f.list, nil
}

type fixer struct {
	*Collector
	dryRun bool
	list   []Finding
}

// found records a finding and, unless this is a dry run, what fix does about it.
func (f *fixer) found(what string, fix func() (string, error)) {
	finding := Finding{What: what}
	if !f.dryRun {
		if finding.Done, finding.Err = fix(); finding.Err == nil {
			failpoint.Hit("fix.done")
		}
	}
	f.list = append(f.list, finding)
}

// permissions closes folders that others can look into: there are ignored
// secrets in the store.
func (f *fixer) permissions(dirs ...string) {
	for _, dir := range dirs {
		st, err := os.Stat(dir)
		if err != nil || !st.IsDir() || st.Mode().Perm() == 0o700 {
			continue
		}
		f.found(fmt.Sprintf("%s has mode %04o", dir, st.Mode().Perm()), func() (string, error) {
			return "set to 0700", os.Chmod(dir, 0o700)
		})
	}
}

func (f *fixer) project(ctx context.Context, p state.Project) {
	if !f.dryRun {
		unlock, err := p.LockCleanup(ctx)
		if err != nil {
			f.list = append(f.list, Finding{What: p.Dir + " cannot be locked", Err: err})
			return
		}
		defer unlock() //nolint:errcheck // a lock that cannot be given back ends with the process
	}
	names, err := p.SessionNames()
	if err != nil {
		f.list = append(f.list, Finding{What: p.SessionsPath() + " cannot be read", Err: err})
		return
	}
	slices.Sort(names)
	for _, id := range names {
		f.session(ctx, p, id)
	}
	f.orphans(ctx, p)
	f.trash(ctx, p)
}

// session recovers one that died and removes its sockets.
func (f *fixer) session(ctx context.Context, p state.Project, id string) {
	l, err := state.Load(p.SessionPath(id))
	switch {
	case errors.Is(err, state.ErrGone):
		f.unborn(p, id)
		return
	case err != nil || l.Alive:
		return // the first is reported elsewhere
	case l.Dead:
		f.found(fmt.Sprintf("session %s died without its end (%s)", id, l.State), func() (string, error) {
			action, _, err := f.Recover(context.WithoutCancel(ctx), l)
			return "recovered: " + action, err
		})
	}
	names, err := state.Names(l.Dir)
	if err != nil {
		return
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(l.Dir, name)
		if !strings.HasPrefix(name, "sock-") {
			continue
		}
		if _, err := supervisor.Listener(path); !errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		f.found(fmt.Sprintf("socket %s of session %s, on which nobody listens", name, id), func() (string, error) {
			if held, err := lockfile.IsHeld(state.LockPath(l.Dir)); err != nil || held {
				return "left: the session is in use", err
			}
			return "removed", os.Remove(path)
		})
	}
}

// unborn removes the folder of a session whose maker was killed at once. One
// that is being made holds its lock.
func (f *fixer) unborn(p state.Project, id string) {
	if held, err := lockfile.IsHeld(state.LockPath(p.SessionPath(id))); err != nil || held || !atomicfile.Exists(p.SessionPath(id)) {
		return
	}
	f.found(fmt.Sprintf("the folder of session %s, which was never opened", id), func() (string, error) {
		return "removed", RemoveUnborn(p)
	})
}

// orphans finds workspaces and worktrees without a session. The cleaner knows
// how to salvage and remove them.
func (f *fixer) orphans(ctx context.Context, p state.Project) {
	c := &cleaner{Collector: f.Collector, opt: CleanupOptions{DryRun: f.dryRun}, now: f.Now(), res: &CleanedUp{}}
	if err := c.orphans(ctx, p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.list = append(f.list, Finding{What: "what lost its session in " + p.Dir + " cannot be looked for", Err: err})
	}
	for _, r := range c.res.Removed {
		done := "removed"
		if r.Salvage != "" {
			done = "removed; what it held is salvage " + r.Salvage
		}
		f.found("what is left of session "+r.ID+": "+r.Why, func() (string, error) { return done, nil })
	}
	for _, s := range c.res.Spared {
		if s.Err != nil {
			f.found("what is left of session "+s.ID, func() (string, error) { return "", s.Err })
		}
	}
}

func (f *fixer) trash(ctx context.Context, p state.Project) {
	c := &cleaner{Collector: f.Collector, opt: CleanupOptions{DryRun: true}, now: f.Now(), res: &CleanedUp{}}
	names, err := state.Names(p.TrashPath())
	if err != nil || len(names) == 0 {
		return
	}
	if err := c.trash(ctx, p); err != nil {
		f.list = append(f.list, Finding{What: p.TrashPath() + " cannot be read", Err: err})
		return
	}
	f.found(fmt.Sprintf("%s of trash in %s", text.Size(c.res.Swept), p.TrashPath()), func() (string, error) {
		done, err := sweep(ctx, p, 0)
		if err == nil && !done {
			err = errors.New("not all of it could be deleted")
		}
		return "deleted", err
	})
}
