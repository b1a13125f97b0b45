package workspacecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

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
	app.LastFlag
	Agent   superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"Limit to this agent's changes."`
	Hunk    []merge.HunkRange `placeholder:"N,N-M" help:"Apply only these hunks, numbered as in workspace diff --hunks for the same paths (repeatable)."`
	Commits bool              `help:"Apply the session's commits to the origin's current branch, as git am does."`
	Reverse bool              `short:"R" help:"Take the changes out of the origin again, as git apply -R does."`
	Check   bool              `help:"Check whether the changes apply, without changing anything."`
	Paths   []string          `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these files and folders; no patterns."`
}

// Run prints a line for each path that was applied; conflicts go to stderr.
func (c *Apply) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if c.Commits {
		return c.commits(ctx, a, l)
	}
	paths, err := l.Pathspecs(a.Flags.Repo, c.Paths)
	if err != nil {
		return err
	}
	opt := apply.Options{
		Check: c.Check, Reverse: c.Reverse, Stay: a.Flags.Repo, Agent: c.Agent, Paths: paths, Hunks: c.Hunk,
	}
	res, rec, err := a.Manager.Apply(ctx, string(l.Origin), l.ID.String(), opt)
	if res == nil {
		return err
	}
	var conflict *apply.Error
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	word := map[bool]string{true: "undone", false: "applied"}[c.Reverse]
	for _, left := range res.LeftOut {
		a.Warn("not " + word + ": " + left)
	}
	if a.Flags.JSON {
		applied := res.Applied
		if err != nil {
			applied = nil // nothing was
		}
		return printWithError(a, err, "session_id", rec.ID, "origin", rec.Origin, "checked", res.Checked,
			"applied", applied, "already", res.Already, "conflicts", res.Conflicts, "left_out", res.LeftOut,
			"salvage", res.Salvage)
	}
	if conflict != nil {
		conflicts(a, res.Conflicts)
		return err
	}
	return printApplied(a, res, c.Reverse)
}

// Undo is apply --reverse of everything.
type Undo struct {
	app.AppliedFlag
	Check bool     `help:"Check whether the changes can be taken out, without changing anything."`
	Paths []string `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these files and folders; no patterns."`
}

// Run prints a line for each path.
func (c *Undo) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if c.Session == "" {
		a.Note("what session %s (%s) brought in:", l.ID, text.Printable(strings.Join(l.Command, " ")))
	}
	return (&Apply{Reverse: true, Check: c.Check, Paths: c.Paths}).Run(ctx, a, l)
}

// printWithError prints the one document, a conflict's with the error in it, and
// returns the error.
func printWithError(a *app.App, err error, fields ...any) error {
	if err != nil {
		fields = append(fields, "error", app.ErrorField(err))
	}
	return errors.Join(a.PrintFields(fields...), err)
}

// conflicts prints what stands in the way, as git does.
func conflicts(a *app.App, list []artifacts.ApplyConflict) {
	for _, c := range list {
		fmt.Fprintln(a.Err, text.Printable(c.Message))
	}
}

// printApplied prints a line for each path.
func printApplied(a *app.App, res *artifacts.Applied, reverse bool) error {
	w := bufio.NewWriter(a.Out)
	word := "applied"
	switch {
	case reverse && res.Checked:
		word = "undoes"
	case reverse:
		word = "undone"
	case res.Checked:
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
	case len(res.Applied) == 0 && reverse:
		a.Note("nothing to undo: the origin does not have these changes")
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

// commits is apply --commits: a line for each commit; conflicts go to stderr.
func (c *Apply) commits(ctx context.Context, a *app.App, l *state.Listed) error {
	if len(c.Paths) > 0 || len(c.Hunk) > 0 || !c.Agent.IsZero() || c.Reverse {
		return superqode.Errorf(superqode.ErrUsage,
			"--commits applies whole commits and takes no PATH, --hunk, --agent or --reverse")
	}
	res, rec, err := a.Manager.ApplyCommits(ctx, string(l.Origin), l.ID.String(), c.Check)
	if res == nil {
		return err
	}
	if a.Flags.JSON {
		return printWithError(a, err, "session_id", rec.ID, "origin", rec.Origin, "checked", res.Checked,
			"branch", res.Branch, "head", res.Head, "commits", res.Commits, "conflicts", res.Conflicts,
			"salvage", res.Salvage)
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
