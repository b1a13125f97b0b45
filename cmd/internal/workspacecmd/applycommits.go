package workspacecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// applyCommitsJSON is the document of apply --commits.
type applyCommitsJSON struct {
	SchemaVersion int                       `json:"schema_version"`
	SessionID     superqode.SessionID       `json:"session_id"`
	Origin        superqode.HostPath        `json:"origin"`
	Checked       bool                      `json:"checked"`
	Branch        string                    `json:"branch"`
	Head          string                    `json:"head"`
	Commits       []artifacts.AppliedCommit `json:"commits"`
	Conflicts     []artifacts.ApplyConflict `json:"conflicts"`
	Salvage       string                    `json:"salvage"`
	Error         *app.ErrorBody            `json:"error,omitempty"`
}

// commits is apply --commits: a line for each commit; conflicts go to stderr.
func (c *Apply) commits(ctx context.Context, a *app.App, l *state.Listed) error {
	if len(c.Paths) > 0 || len(c.Hunk) > 0 || !c.Agent.IsZero() {
		return superqode.Errorf(superqode.ErrUsage, "--commits applies whole commits and takes no PATH, --hunk or --agent")
	}
	res, rec, err := a.Manager.ApplyCommits(ctx, string(l.Origin), l.ID.String(), c.Check)
	if res == nil {
		return err
	}
	if a.Flags.JSON {
		doc := applyCommitsJSON{
			SchemaVersion: 1, SessionID: rec.ID, Origin: rec.Origin, Checked: res.Checked, Branch: res.Branch, Head: res.Head,
			Commits: app.NotNil(res.Commits), Conflicts: app.NotNil(res.Conflicts), Salvage: res.Salvage,
		}
		if err != nil {
			_, code := app.Classify(err, "")
			doc.Error = &app.ErrorBody{Code: code, Message: err.Error(), Hint: superqode.Hint(err), Paths: app.ErrorPaths(err)}
		}
		return errors.Join(a.PrintJSON(doc), err)
	}
	if err != nil {
		conflicts(a, res.Conflicts)
		return err
	}
	return printAppliedCommits(a, res)
}

func printAppliedCommits(a *app.App, res *artifacts.AppliedCommits) error {
	w := bufio.NewWriter(a.Out)
	word := "applied"
	if res.Checked {
		word = "applies"
	}
	for _, c := range res.Commits {
		fmt.Fprintf(w, "%-8s %s %s\n", word, c.Commit[:min(len(c.Commit), 12)], text.Printable(c.Subject))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case len(res.Commits) == 0:
		a.Note("nothing to apply: the origin already has them")
	case res.Salvage != "":
		a.Note("overwritten uncommitted files were salvaged: superqode workspace restore %s", res.Salvage)
	}
	return nil
}
