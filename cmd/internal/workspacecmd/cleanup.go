package workspacecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Sweep empties a project's trash; superqode starts itself with it.
type Sweep struct {
	Project string `arg:""`
}

// Run prints nothing: nobody looks.
func (c *Sweep) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	return gc.SweepProject(ctx, m.Host, c.Project)
}

// Cleanup removes what has ended or was forgotten.
type Cleanup struct {
	OlderThan time.Duration `type:"age" placeholder:"AGE" help:"Spare sessions used within AGE: 24h, 90m, 7d (default: workspace.cleanup_after_hours)."`
	Force     bool          `help:"Also remove pinned sessions and sessions whose changes are kept nowhere else. Everything is salvaged first."`
	DryRun    bool          `help:"Print what would be done, without doing it."`
	All       bool          `short:"a" help:"Clean up the sessions of every origin."`
}

type removedJSON struct {
	SessionID string `json:"session_id"`
	Why       string `json:"why"`
	Salvage   string `json:"salvage"`
}

type sparedJSON struct {
	SessionID string `json:"session_id"`
	Why       string `json:"why"`
	Failed    bool   `json:"failed"` // it should have been removed
}

// Run prints one line for each session; that some were spared is no failure,
// that one could not be removed is.
func (c *Cleanup) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	opt := gc.CleanupOptions{
		Dir: a.Flags.Repo, All: c.All, OlderThan: c.OlderThan, Force: c.Force, DryRun: c.DryRun,
	}
	if opt.OlderThan == 0 {
		cfg, err := a.Configuration(ctx)
		if err != nil {
			return err
		}
		opt.OlderThan = cfg.Workspace.CleanupAfter
	}
	res, err := m.Collector().Cleanup(ctx, opt)
	if res == nil {
		return err
	}
	for _, s := range res.Spared {
		if s.Err != nil {
			err = errors.Join(err, fmt.Errorf("session %s: %w", s.ID, s.Err))
		}
	}
	if superqode.Hint(err) == "" {
		err = site.RoomHint(err, "superqode workspace cleanup --force")
	}
	if a.Flags.JSON {
		removed, spared := []removedJSON{}, []sparedJSON{}
		for _, r := range res.Removed {
			removed = append(removed, removedJSON{r.ID, r.Why, r.Salvage})
		}
		for _, s := range res.Spared {
			spared = append(spared, sparedJSON{s.ID, s.Why, s.Err != nil})
		}
		return errors.Join(err, a.PrintFields("dry_run", c.DryRun, "removed", removed, "spared", spared,
			"swept_bytes", res.Swept))
	}
	w := bufio.NewWriter(a.Out)
	removed := "removed"
	if c.DryRun {
		removed = "would remove"
	}
	for _, r := range res.Removed {
		line := fmt.Sprintf("%s\t%s\t%s", removed, r.ID, text.Printable(r.Why))
		if r.Salvage != "" {
			line += "; superqode workspace restore " + r.Salvage
		}
		fmt.Fprintln(w, line)
	}
	for _, s := range res.Spared {
		fmt.Fprintf(w, "spared\t%s\t%s\n", s.ID, text.Printable(s.Why))
	}
	if len(res.Removed)+len(res.Spared) == 0 {
		a.Note("nothing to clean up")
	}
	if res.Swept > 0 {
		a.Note("%s of trash", text.Size(res.Swept))
	}
	if c.DryRun {
		a.Note("dry run: nothing was done")
	}
	return errors.Join(err, w.Flush())
}

// Recover finishes what a crash left.
type Recover struct{ app.SessionFlag }

type recoveredJSON struct {
	SessionID superqode.SessionID `json:"session_id"`
	Action    string              `json:"action"`
	Error     string              `json:"error"`
}

// Run prints one line for each session that had died.
func (c *Recover) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	done, err := m.Recover(ctx, a.Flags.Repo, c.Session)
	if err != nil {
		return err
	}
	rows, failed := []recoveredJSON{}, error(nil)
	for _, r := range done {
		row := recoveredJSON{r.ID, r.Action, ""}
		if r.Err != nil {
			row.Error = r.Err.Error()
			failed = errors.Join(failed, fmt.Errorf("recover session %s: %w", r.ID, r.Err))
		}
		rows = append(rows, row)
		if !a.Flags.JSON {
			fmt.Fprintf(a.Out, "%s\t%s\n", r.ID, r.Action)
		}
	}
	if len(rows) == 0 {
		a.Note("nothing to recover")
	}
	if a.Flags.JSON {
		if err := a.PrintFields("recovered", rows); err != nil {
			return err
		}
	}
	return failed
}
