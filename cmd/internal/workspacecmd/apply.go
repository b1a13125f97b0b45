package workspacecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Apply brings a session's changes into the origin's work tree.
type Apply struct {
	app.SessionFlag
	Agent   superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"Limit to this agent's changes."`
	Hunk    []merge.HunkRange `placeholder:"N,N-M" help:"Apply only these hunks, numbered as in workspace diff --hunks for the same paths (repeatable)."`
	Commits bool              `help:"Apply the session's commits to the origin's current branch, as git am does."`
	Check   bool              `help:"Check whether the changes apply, without changing anything."`
	Paths   []string          `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these files and folders; no patterns."`
}

// applyJSON is the command's document. A conflict's has the error in it, too.
type applyJSON struct {
	SchemaVersion int                       `json:"schema_version"`
	SessionID     superqode.SessionID       `json:"session_id"`
	Origin        superqode.HostPath        `json:"origin"`
	Checked       bool                      `json:"checked"`
	Applied       []artifacts.AppliedPath   `json:"applied"`
	Already       []artifacts.AppliedPath   `json:"already"`
	Conflicts     []artifacts.ApplyConflict `json:"conflicts"`
	LeftOut       []string                  `json:"left_out"`
	Salvage       string                    `json:"salvage"`
	Error         *app.ErrorBody            `json:"error,omitempty"`
}

// Run prints a line for each path that was applied; conflicts go to stderr.
func (c *Apply) Run(ctx context.Context, a *app.App) error {
	l, err := c.Find(ctx, a)
	if err != nil {
		return err
	}
	if c.Commits {
		return c.commits(ctx, a, l)
	}
	opt := apply.Options{Check: c.Check, Stay: a.Flags.Repo, Agent: c.Agent}
	if opt.Paths, err = l.Pathspecs(a.Flags.Repo, c.Paths); err != nil {
		return err
	}
	opt.Hunks = c.Hunk
	res, rec, err := a.Manager.Apply(ctx, string(l.Origin), l.ID.String(), opt)
	if res == nil {
		return err
	}
	var conflict *apply.Error
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	for _, left := range res.LeftOut {
		a.Warn("not applied: " + left)
	}
	if a.Flags.JSON {
		return errors.Join(printApplyJSON(a, res, rec, err), err)
	}
	if conflict != nil {
		conflicts(a, res.Conflicts)
		return err
	}
	return printApplied(a, res)
}

// printApplyJSON prints the one document, with the error when there is one.
func printApplyJSON(a *app.App, res *artifacts.Applied, rec state.Record, err error) error {
	doc := applyJSON{
		SchemaVersion: 1, SessionID: rec.ID, Origin: rec.Origin, Checked: res.Checked, Applied: app.NotNil(res.Applied), Already: app.NotNil(res.Already),
		Conflicts: app.NotNil(res.Conflicts), LeftOut: app.NotNil(res.LeftOut), Salvage: res.Salvage,
	}
	if err != nil {
		doc.Applied = []artifacts.AppliedPath{} // nothing was
		_, code := app.Classify(err, "")
		doc.Error = &app.ErrorBody{Code: code, Message: err.Error(), Hint: superqode.Hint(err), Paths: app.ErrorPaths(err)}
	}
	return a.PrintJSON(doc)
}

// conflicts prints what stands in the way, as git does.
func conflicts(a *app.App, list []artifacts.ApplyConflict) {
	for _, c := range list {
		fmt.Fprintln(a.Err, text.Printable(c.Message))
	}
}

// printApplied prints a line for each path.
func printApplied(a *app.App, res *artifacts.Applied) error {
	w := bufio.NewWriter(a.Out)
	word := "applied"
	if res.Checked {
		word = "applies"
	}
	for _, p := range res.Applied {
		fmt.Fprintln(w, appliedLine(word, p))
	}
	for _, p := range res.Already {
		fmt.Fprintln(w, appliedLine("already", p))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case len(res.Applied) > 0 && res.Salvage != "":
		a.Note("overwritten and deleted files were salvaged: superqode workspace restore %s", res.Salvage)
	case len(res.Applied) == 0 && len(res.Already) > 0:
		a.Note("nothing to apply: the origin already has it")
	case len(res.Applied) == 0:
		a.Note("nothing to apply")
	}
	return nil
}

// appliedLine is "applied  M a.go +3 -1".
func appliedLine(word string, p artifacts.AppliedPath) string {
	letter := map[superqode.ChangeType]string{
		superqode.ChangeCreated: "A", superqode.ChangeModified: "M", superqode.ChangeDeleted: "D",
		superqode.ChangeRenamed: "R", superqode.ChangeMode: "M", superqode.ChangeKind: "T",
	}[p.Type]
	path := text.QuotePath(p.Path.String())
	if !p.OldPath.IsZero() {
		path = text.QuotePath(p.OldPath.String()) + " → " + path
	}
	line := fmt.Sprintf("%-8s %s %s %s", word, letter, path, report.ChangeSize(p.Change))
	if p.Merged {
		line += " (merged)"
	}
	return line
}
