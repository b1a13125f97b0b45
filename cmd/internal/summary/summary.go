// Package summary is the block on stderr that ends a session.
package summary

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/text"
)

// agentLines are the lines of a summary that tell what each agent did.
func agentLines(a *app.App, res *artifacts.Result) []string {
	var lines []string
	width := 0
	for _, g := range res.Agents {
		width = max(width, len(g.Agent.String()))
	}
	for _, g := range res.Agents {
		line := term.Padded(g.Agent.String(), width) + "  " + ExitWord(a, g.ExitCode, g.TimedOut) + ", " + text.Plural(len(g.Changes), "path")
		if n := len(g.Conflicts); n > 0 {
			line += ", " + a.PaintErr(text.Plural(n, "conflict"), term.Yellow) + ": " + text.QuotePath(g.Conflicts[0])
			if n > 1 {
				line += ", …"
			}
		}
		if g.Workspace.Preserved && g.Workspace.Path != res.Workspace.Path {
			line += ", kept: " + text.QuotePath(g.Workspace.Path)
		}
		lines = append(lines, line)
	}
	return lines
}

// ExitWord says in colour how a program ended.
func ExitWord(a *app.App, code int, timedOut bool) string {
	switch {
	case timedOut:
		return a.PaintErr("timed out", term.Red)
	case code != 0:
		return a.PaintErr(fmt.Sprintf("exit code %d", code), term.Red)
	}
	return a.PaintErr("done", term.Green)
}

// shownChanges is how many changes the summary lists; the rest is counted.
const shownChanges = 6

// Print prints the block that ends a session: what changed, what was blocked,
// what was checked, where things are and what can be done next.
func Print(a *app.App, res *artifacts.Result) {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", key, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s %s\n", a.PaintErr("superqode:", term.Bold), headline(a, res))
	line("changed", "%s", CountChanges(res.Changes))
	for i, c := range res.Changes {
		if i == shownChanges {
			fmt.Fprintf(&b, "             … and %d more: superqode workspace changes --session %s\n", len(res.Changes)-i, app.ShortID(res.SessionID))
			break
		}
		fmt.Fprintf(&b, "             %s\n", changeLine(a, c))
	}
	for i, l := range agentLines(a, res) {
		line([]string{"agents", ""}[min(i, 1)], "%s", l)
	}
	if found := foundLine(a, res); found != "" {
		line("found", "%s", found)
	}
	line("blocked", "%s", blockedLine(res.Guard))
	origin := originLine(a, res.OriginCheck)
	if res.Applied.Done() && len(res.Applied.Applied) > 0 && res.OriginCheck.Unchanged {
		origin += " before the apply"
	}
	line("origin", "%s", origin)
	if res.Applied != nil {
		line("applied", "%s", appliedText(a, res.Applied))
	}
	line("workspace", "%s", workspaceLine(a, res))
	root := filepath.Join(res.Origin, ".superqode", "qe-artifacts")
	patch, report := KeyArtifacts(res)
	if patch != "" {
		line("patch", "%s", text.QuotePath(filepath.Join(root, patch)))
	}
	if c := res.Commits; c != nil && c.Series == "" {
		line("commits", "%s without a change, kept as %s", text.Plural(c.Count, "commit"), c.Ref)
	} else if c != nil {
		line("commits", "%s, kept: %s", text.Plural(c.Count, "commit"), text.QuotePath(filepath.Join(root, c.Series)))
	}
	if report != "" {
		line("report", "%s", text.QuotePath(filepath.Join(root, report)))
	}
	for i, next := range nextCommands(a, res, filepath.Join(root, patch)) {
		line([]string{"next", ""}[min(i, 1)], "%s", next)
	}
	_, _ = io.WriteString(a.Err, b.String()) // nothing to be done when stderr is gone
}

func headline(a *app.App, res *artifacts.Result) string {
	took := time.Duration(res.DurationSeconds * float64(time.Second)).Round(10 * time.Millisecond)
	verdict := a.PaintErr(fmt.Sprintf("exit code %d", res.ExitCode), term.Green)
	if res.Idle {
		verdict = "no program ran"
	} else if res.Limit != "" {
		verdict = a.PaintErr(fmt.Sprintf("exit code %d, limit %s", res.ExitCode, res.Limit), term.Red)
	} else if res.TimedOut {
		verdict = a.PaintErr("timed out", term.Red)
	} else if res.ExitCode != 0 {
		verdict = a.PaintErr(fmt.Sprintf("exit code %d", res.ExitCode), term.Red)
	}
	return fmt.Sprintf("session %s (%s): %s after %s", res.SessionID, res.Mode, verdict, took)
}

// CountChanges is how many paths and lines changed, in one line.
func CountChanges(changes []superqode.Change) string {
	if len(changes) == 0 {
		return "nothing"
	}
	added, removed := 0, 0
	for _, c := range changes {
		added += max(c.LinesAdded, 0)
		removed += max(c.LinesRemoved, 0)
	}
	return fmt.Sprintf("%s (+%d -%d)", text.Plural(len(changes), "path"), added, removed)
}

// changeLine is one change as people read it: type, path, lines.
func changeLine(a *app.App, c superqode.Change) string {
	path := text.QuotePath(c.Path.String())
	if !c.OldPath.IsZero() {
		path = text.QuotePath(c.OldPath.String()) + " → " + path
	}
	return fmt.Sprintf("%-8s %s %s", c.Type, path, ChangeSize(c))
}

// ChangeSize says how much of a path changed.
func ChangeSize(c superqode.Change) string {
	switch {
	case c.Binary:
		return "(binary)"
	case c.Type == superqode.ChangeMode:
		return fmt.Sprintf("%s → %s", superqode.FormatMode(c.OldMode), superqode.FormatMode(c.NewMode))
	case c.LinesAdded < 0 || c.LinesRemoved < 0:
		return ""
	}
	return fmt.Sprintf("+%d -%d", c.LinesAdded, c.LinesRemoved)
}

func blockedLine(g artifacts.Guard) string {
	active := []string{}
	for _, l := range []struct{ name, state string }{{"shim", g.Layers.Shim}, {"hooks", g.Layers.Hooks}, {"kernel", g.Layers.Kernel}} {
		if l.state == "active" {
			active = append(active, l.name)
		}
	}
	guard := "no guard layer was active"
	if len(active) > 0 {
		guard = "guard: " + strings.Join(active, ", ")
	}
	if len(g.Blocked) == 0 {
		return fmt.Sprintf("nothing (%s)", guard)
	}
	last := g.Blocked[len(g.Blocked)-1]
	return fmt.Sprintf("%s, last: %s (%s)", text.Plural(len(g.Blocked), "operation"), text.Printable(strings.Join(last.Command, " ")), guard)
}

// foundLine counts the findings, "" when there are none.
func foundLine(a *app.App, res *artifacts.Result) string {
	s := res.Found
	text := s.BySeverity.Text()
	switch {
	case s.BySeverity.Critical > 0:
		text = a.PaintErr(text, term.Red)
	case s.BySeverity.High > 0:
		text = a.PaintErr(text, term.Yellow)
	}
	if s.Suppressed == 0 {
		return text
	}
	if text == "" {
		text = "nothing that counts"
	}
	return fmt.Sprintf("%s (%d suppressed)", text, s.Suppressed)
}

func originLine(a *app.App, check artifacts.OriginCheck) string {
	if check.Unchanged {
		return "unchanged, checked"
	}
	shown := check.Differences[:min(3, len(check.Differences))]
	text := a.PaintErr("not as it was: ", term.Yellow) + text.Printable(strings.Join(shown, "; "))
	if more := len(check.Differences) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// appliedText says what became of the changes in the origin, which was checked
// before.
func appliedText(a *app.App, res *artifacts.Applied) string {
	said := text.Printable(res.Text())
	if res.Why != "" || len(res.Conflicts) > 0 {
		said = a.PaintErr(said, term.Yellow)
	}
	for _, c := range res.Conflicts[:min(len(res.Conflicts), shownChanges)] {
		said += "\n             " + text.Printable(c.Message)
	}
	if more := len(res.Conflicts) - shownChanges; more > 0 {
		said += fmt.Sprintf("\n             … and %d more", more)
	}
	return said
}

func workspaceLine(a *app.App, res *artifacts.Result) string {
	switch {
	case res.Mode == superqode.ModeShared:
		return "the origin itself; in shared mode nothing is brought back"
	case res.Mode == superqode.ModeGitSnapshot && res.Revert.Verified:
		return "the origin itself; brought back, verified"
	case res.Mode == superqode.ModeGitSnapshot && res.Revert.Method == "none":
		return "the origin itself; its changes were left, as asked for"
	case res.Mode == superqode.ModeGitSnapshot:
		return a.PaintErr("the origin itself; NOT brought back", term.Red) + ": superqode workspace revert --session " + app.ShortID(res.SessionID)
	case res.Workspace.Preserved:
		return "kept: " + text.QuotePath(res.Workspace.Path)
	case res.Revert.Verified:
		return "removed, verified"
	}
	said := a.PaintErr("removed, not verified", term.Red)
	if len(res.Revert.Differences) > 0 {
		said += ": " + text.Printable(res.Revert.Differences[0])
	}
	return said
}

// KeyArtifacts finds the session's patch and its report for people.
func KeyArtifacts(res *artifacts.Result) (patch, report string) {
	for _, r := range res.Artifacts {
		path := r.Path.String()
		switch {
		case path == artifacts.SessionPatch(res.SessionID): // and not one that the program left
			patch = path
		case path == artifacts.ReportFile(res.SessionID, "html"), path == artifacts.ReportFile(res.SessionID, "md") && report == "":
			report = path
		}
	}
	return patch, report
}

// nextCommands lists what can be done with what the session left, as lines to
// paste where the person stands.
func nextCommands(a *app.App, res *artifacts.Result, patch string) []string {
	var next []string
	own := func(words string) {
		next = append(next, a.Self(res.Origin)+" "+words+" --session "+app.ShortID(res.SessionID))
	}
	if len(res.Changes) > 0 {
		own("workspace diff")
	}
	if len(res.Changes) > 0 && strings.HasSuffix(patch, ".patch") && res.Revert.Method != "none" && !res.Applied.Done() {
		own("workspace apply")
		next = append(next, fmt.Sprintf("git -C %s apply %s", text.Quote(res.Origin), text.Quote(patch)))
	}
	if res.Found.TotalFindings > 0 {
		own("finding list")
	}
	if res.Commits != nil {
		next = append(next, fmt.Sprintf("superqode -C %s workspace apply --session %s --commits", text.Quote(res.Origin), app.ShortID(res.SessionID)))
	}
	if res.Workspace.Preserved {
		next = append(next, fmt.Sprintf("cd %s", text.Quote(res.Workspace.Path)))
		own("workspace end")
	}
	return next
}
