package gc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// SweepCommand is the hidden command word with which superqode starts itself to
// empty a project's trash; its one argument is the project folder's name.
const SweepCommand = "sweep-trash"

// Removing a big workspace is one rename; deleting its files takes longer than
// everything else that ends a session. sweepNow is how long a command goes on
// deleting after its result was printed. What is left then goes to a process of
// its own, at idle priority, or to the next command if that is interrupted.
const sweepNow = 4 * time.Millisecond

// Touched are the projects whose trash Tidy looks at, each once. It is safe for
// concurrent use.
type Touched struct{ projects sync.Map }

// Add adds one.
func (t *Touched) Add(p state.Project) { t.projects.Store(p, nil) }

// Tidy deletes what this command, or an interrupted one before it, left in the
// trash of the projects that it touched. Call it after the command's result was printed.
func (t *Touched) Tidy(ctx context.Context, h *site.Host) (err error) {
	for key := range t.projects.Range {
		p := key.(state.Project)
		names, rerr := state.Names(p.TrashPath())
		if rerr != nil || len(names) == 0 {
			err = errors.Join(err, rerr)
			continue
		}
		budget := sweepNow
		if h.Self == "" { // nobody else would go on
			budget = 0
		}
		done, serr := sweep(ctx, p, budget)
		if serr != nil {
			err = errors.Join(err, serr)
			continue
		}
		if !done {
			err = errors.Join(err, sweepApart(h, p))
		}
	}
	return err
}

// sweep deletes what lies in a project's trash. Another process that is at it
// counts as done.
func sweep(ctx context.Context, p state.Project, budget time.Duration) (done bool, err error) {
	unlock, err := lockfile.TryLock(filepath.Join(p.Dir, "trash.lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	done, err = trash.Sweep(ctx, p.TrashPath(), budget)
	return done, errors.Join(err, unlock())
}

// sweepApart starts superqode again, detached, to finish the sweep.
func sweepApart(h *site.Host, p state.Project) error {
	cmd := exec.Command(h.Self, "--home", h.Home, SweepCommand, filepath.Base(p.Dir))
	cmd.Dir = "/" // it must not keep the caller's folder busy
	cmd.Env = h.Env
	return runner.StartApart(cmd)
}

// SweepProject empties the trash of one project, named by its folder, at the
// lowest priority that the system has.
func SweepProject(ctx context.Context, h *site.Host, name string) error {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return superqode.Errorf(superqode.ErrUsage, "%q is not the name of a project folder", name)
	}
	p := state.Project{Dir: filepath.Join(h.WorkingPath(), name)}
	if _, err := os.Lstat(p.Dir); err != nil {
		return site.NotFoundOr(err, p.Dir)
	}
	yieldCPU()
	_, err := sweep(ctx, p, 0)
	return err
}
