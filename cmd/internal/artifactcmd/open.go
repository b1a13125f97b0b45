package artifactcmd

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cli/browser"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/life"
)

// Open shows a session's report to a person.
type Open struct{ app.LastFlag }

// Run prints the page's path and starts $BROWSER or, without one, what this machine
// opens pages with.
func (c *Open) Run(ctx context.Context, a *app.App, s *life.Session) error {
	rec := s.Record()
	store, err := artifacts.Open(string(rec.Origin))
	if err != nil {
		return err
	}
	page := filepath.Join(store.Dir(), artifacts.ReportFile(rec.ID, "html"))
	if !atomicfile.Exists(page) {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has no report yet", rec.ID),
			"superqode workspace end --session %s", rec.ID)
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", rec.ID, "path", page)
	}
	if err := a.Line("%s", a.Path(page)); err != nil {
		return err
	}
	start := browser.OpenFile
	if words := strings.Fields(a.Getenv("BROWSER")); len(words) > 0 {
		start = func(page string) error {
			cmd := exec.CommandContext(ctx, words[0], append(words[1:], page)...)
			cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = a.Err, a.Err, a.Env, a.Dir
			return cmd.Run()
		}
	}
	browser.Stdout, browser.Stderr = a.Err, a.Err
	if err := start(page); err != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no browser could be started: %v", err),
			"superqode report --session %s", rec.ID)
	}
	return nil
}
