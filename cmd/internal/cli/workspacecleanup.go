package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// workspaceCleanupCmd removes what has ended or was forgotten.
type workspaceCleanupCmd struct {
	OlderThan ageFlag `placeholder:"AGE" help:"Spare what was used since then: 24h, 90m, 7d (default: workspace.cleanup_after_hours)."`
	Force     bool    `help:"Take pinned sessions too, and those with changes that are kept nowhere else; all is salvaged first."`
	DryRun    bool    `help:"Say what would be done."`
	All       bool    `short:"a" help:"The sessions of every origin."`
}

// ageFlag is a time span with a unit, days included. Given as nothing at all, 0s, it
// is the shortest there is; its zero value says that it was not given.
type ageFlag time.Duration

// UnmarshalText accepts what time.ParseDuration accepts, and whole days.
func (d *ageFlag) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if days, ok := strings.CutSuffix(string(b), "d"); ok {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			v = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not an age such as 24h, 90m or 7d", b)
	}
	*d = ageFlag(max(v, 1)) // zero, everything, must differ from no flag
	return nil
}

type cleanupJSON struct {
	SchemaVersion int           `json:"schema_version"`
	DryRun        bool          `json:"dry_run"`
	Removed       []removedJSON `json:"removed"`
	Spared        []sparedJSON  `json:"spared"`
	SweptBytes    int64         `json:"swept_bytes"`
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
func (c *workspaceCleanupCmd) Run(ctx context.Context, a *app) error {
	opt := session.CleanupOptions{Dir: a.flags.Repo, All: c.All, OlderThan: time.Duration(c.OlderThan), Force: c.Force, DryRun: c.DryRun}
	if opt.OlderThan == 0 {
		cfg, err := a.configuration(ctx)
		if err != nil {
			return err
		}
		opt.OlderThan = cfg.Workspace.CleanupAfter
	}
	m, err := a.sessions()
	if err != nil {
		return err
	}
	res, err := m.Cleanup(ctx, opt)
	if res == nil {
		return err
	}
	for _, s := range res.Spared {
		if s.Err != nil {
			err = errors.Join(err, fmt.Errorf("session %s: %w", s.ID, s.Err))
		}
	}
	if a.flags.JSON {
		a.printed = true
		return errors.Join(err, a.printJSON(cleanupDocument(res, c.DryRun)))
	}
	w := bufio.NewWriter(a.Out)
	for _, r := range res.Removed {
		line := fmt.Sprintf("removed\t%s\t%s", r.ID, text.Printable(r.Why))
		if r.Salvage != "" {
			line += "; superqode workspace restore " + r.Salvage
		}
		fmt.Fprintln(w, line)
	}
	for _, s := range res.Spared {
		fmt.Fprintf(w, "spared\t%s\t%s\n", s.ID, text.Printable(s.Why))
	}
	if len(res.Removed)+len(res.Spared) == 0 {
		a.note("nothing to clean up")
	}
	if res.Swept > 0 {
		a.note("%s of trash", text.Size(res.Swept))
	}
	if c.DryRun {
		a.note("dry run: nothing was done")
	}
	return errors.Join(err, w.Flush())
}

func cleanupDocument(res *session.CleanedUp, dryRun bool) cleanupJSON {
	doc := cleanupJSON{1, dryRun, make([]removedJSON, 0, len(res.Removed)), make([]sparedJSON, 0, len(res.Spared)), res.Swept}
	for _, r := range res.Removed {
		doc.Removed = append(doc.Removed, removedJSON{r.ID, r.Why, r.Salvage})
	}
	for _, s := range res.Spared {
		doc.Spared = append(doc.Spared, sparedJSON{s.ID, s.Why, s.Err != nil})
	}
	return doc
}
