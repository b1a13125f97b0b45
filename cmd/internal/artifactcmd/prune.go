package artifactcmd

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Prune takes away what old sessions left.
type Prune struct {
	KeepSessions *int          `placeholder:"N" help:"Keep the artifacts of the N newest sessions (default: artifacts.keep_sessions)."`
	OlderThan    time.Duration `type:"age" placeholder:"AGE" help:"Only prune sessions whose newest artifact is older than AGE (36h, 30d)."`
	DryRun       bool          `help:"Print what would be removed, without removing it."`
}

// Run prints what went and what was spared.
func (c *Prune) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	if a.Getenv("SUPERQODE_SOCKET") != "" {
		return superqode.Errorf(superqode.ErrDenied, "a program in a session cannot remove artifacts")
	}
	opt := artifacts.PruneOptions{OlderThan: c.OlderThan, DryRun: c.DryRun}
	switch {
	case c.KeepSessions != nil && *c.KeepSessions < 0:
		return superqode.Errorf(superqode.ErrUsage, "--keep-sessions: %d is less than 0", *c.KeepSessions)
	case c.KeepSessions != nil:
		opt.KeepSessions = *c.KeepSessions
		if opt.KeepSessions == 0 && opt.OlderThan == 0 { // none at all, however young
			opt.OlderThan = time.Nanosecond
		}
	case c.OlderThan == 0:
		cfg, err := a.Configuration(ctx)
		if err != nil {
			return err
		}
		if opt.KeepSessions = cfg.Artifacts.KeepSessions; opt.KeepSessions == 0 {
			err := superqode.Errorf(superqode.ErrUsage, "artifacts.keep_sessions is 0, which means no limit")
			return superqode.WithHint(err, "superqode artifacts prune --keep-sessions 50")
		}
	}
	var err error
	if opt.Preserved, err = registry.KeptSessions(ctx, m.Host, a.Flags.Repo); err != nil {
		return err
	}
	store, err := a.Store()
	if err != nil {
		return err
	}
	removed, spared, err := store.Prune(ctx, opt)
	if err != nil {
		return err
	}
	warnStore(a, store)
	return printPruned(a, c.DryRun, removed, spared)
}

func printPruned(a *app.App, dry bool, removed []artifacts.Artifact, spared []artifacts.Problem) error {
	if a.Flags.JSON {
		return a.PrintFields("dry_run", dry, "removed", removed, "spared", problems(spared))
	}
	w := bufio.NewWriter(a.Out)
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	for _, it := range removed {
		fmt.Fprintf(w, "%s\t%s\t%s\n", verb, text.Printable(it.ID), text.QuotePath(it.Path.String()))
	}
	for _, p := range spared {
		fmt.Fprintf(w, "spared\t%s\n", text.Printable(p.String()))
	}
	if len(removed)+len(spared) == 0 {
		a.Note("nothing to prune")
	}
	return w.Flush()
}
