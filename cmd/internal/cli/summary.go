package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// shownChanges is how many changes the summary lists; the rest is counted.
const shownChanges = 6

// summary prints the block that ends a session: what changed, what was blocked,
// what was checked, where things are and what can be done next.
func (a *app) summary(res *artifacts.Result) {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", key, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s %s\n", a.paintErr("superqode:", bold), a.headline(res))
	line("changed", "%s", countChanges(res.Changes))
	for i, c := range res.Changes {
		if i == shownChanges {
			fmt.Fprintf(&b, "             … and %d more: superqode workspace changes --session %s\n", len(res.Changes)-i, shortID(res.SessionID))
			break
		}
		fmt.Fprintf(&b, "             %s\n", a.changeLine(c))
	}
	for i, l := range a.agentLines(res) {
		line([]string{"agents", ""}[min(i, 1)], "%s", l)
	}
	if found := a.foundLine(res); found != "" {
		line("found", "%s", found)
	}
	line("blocked", "%s", blockedLine(res.Guard))
	origin := a.originLine(res.OriginCheck)
	if res.Applied.Done() && len(res.Applied.Applied) > 0 && res.OriginCheck.Unchanged {
		origin += " before the apply"
	}
	line("origin", "%s", origin)
	if res.Applied != nil {
		line("applied", "%s", a.appliedText(res.Applied))
	}
	line("workspace", "%s", a.workspaceLine(res))
	root := filepath.Join(res.Origin, ".superqode", "qe-artifacts")
	patch, report := keyArtifacts(res)
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
	for i, next := range a.nextCommands(res, filepath.Join(root, patch)) {
		line([]string{"next", ""}[min(i, 1)], "%s", next)
	}
	_, _ = io.WriteString(a.Err, b.String()) // nothing to be done when stderr is gone
}

func (a *app) headline(res *artifacts.Result) string {
	took := time.Duration(res.DurationSeconds * float64(time.Second)).Round(10 * time.Millisecond)
	verdict := a.paintErr(fmt.Sprintf("exit code %d", res.ExitCode), green)
	if res.Idle {
		verdict = "no program ran"
	} else if res.Limit != "" {
		verdict = a.paintErr(fmt.Sprintf("exit code %d, limit %s", res.ExitCode, res.Limit), red)
	} else if res.TimedOut {
		verdict = a.paintErr("timed out", red)
	} else if res.ExitCode != 0 {
		verdict = a.paintErr(fmt.Sprintf("exit code %d", res.ExitCode), red)
	}
	return fmt.Sprintf("session %s (%s): %s after %s", res.SessionID, res.Mode, verdict, took)
}

// shortID is the part of an id that people type: its random end.
func shortID(id superqode.SessionID) string {
	s := id.String()
	return s[strings.LastIndexByte(s, '-')+1:]
}

func countChanges(changes []superqode.Change) string {
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
func (a *app) changeLine(c superqode.Change) string {
	path := text.QuotePath(c.Path.String())
	if !c.OldPath.IsZero() {
		path = text.QuotePath(c.OldPath.String()) + " → " + path
	}
	return fmt.Sprintf("%-8s %s %s", c.Type, path, changeSize(c))
}

// changeSize says how much of a path changed.
func changeSize(c superqode.Change) string {
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
func (a *app) foundLine(res *artifacts.Result) string {
	s := res.Found
	text := s.BySeverity.Text()
	switch {
	case s.BySeverity.Critical > 0:
		text = a.paintErr(text, red)
	case s.BySeverity.High > 0:
		text = a.paintErr(text, yellow)
	}
	if s.Suppressed == 0 {
		return text
	}
	if text == "" {
		text = "nothing that counts"
	}
	return fmt.Sprintf("%s (%d suppressed)", text, s.Suppressed)
}

func (a *app) originLine(check artifacts.OriginCheck) string {
	if check.Unchanged {
		return "unchanged, checked"
	}
	shown := check.Differences[:min(3, len(check.Differences))]
	text := a.paintErr("not as it was: ", yellow) + text.Printable(strings.Join(shown, "; "))
	if more := len(check.Differences) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// appliedText says what became of the changes in the origin, which was checked
// before.
func (a *app) appliedText(res *artifacts.Applied) string {
	said := text.Printable(res.Text())
	if res.Why != "" || len(res.Conflicts) > 0 {
		said = a.paintErr(said, yellow)
	}
	for _, c := range res.Conflicts[:min(len(res.Conflicts), shownChanges)] {
		said += "\n             " + text.Printable(c.Message)
	}
	if more := len(res.Conflicts) - shownChanges; more > 0 {
		said += fmt.Sprintf("\n             … and %d more", more)
	}
	return said
}

func (a *app) workspaceLine(res *artifacts.Result) string {
	switch {
	case res.Mode == superqode.ModeShared:
		return "the origin itself; in shared mode nothing is brought back"
	case res.Mode == superqode.ModeGitSnapshot && res.Revert.Verified:
		return "the origin itself; brought back, verified"
	case res.Mode == superqode.ModeGitSnapshot && res.Revert.Method == "none":
		return "the origin itself; its changes were left, as asked for"
	case res.Mode == superqode.ModeGitSnapshot:
		return a.paintErr("the origin itself; NOT brought back", red) + ": superqode workspace revert --session " + shortID(res.SessionID)
	case res.Workspace.Preserved:
		return "kept: " + text.QuotePath(res.Workspace.Path)
	case res.Revert.Verified:
		return "removed, verified"
	}
	said := a.paintErr("removed, not verified", red)
	if len(res.Revert.Differences) > 0 {
		said += ": " + text.Printable(res.Revert.Differences[0])
	}
	return said
}

// keyArtifacts finds the session's patch and its report for people.
func keyArtifacts(res *artifacts.Result) (patch, report string) {
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
func (a *app) nextCommands(res *artifacts.Result, patch string) []string {
	var next []string
	own := func(words string) {
		next = append(next, a.self(res.Origin)+" "+words+" --session "+shortID(res.SessionID))
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
		next = append(next, fmt.Sprintf("superqode -C %s workspace apply --session %s --commits", text.Quote(res.Origin), shortID(res.SessionID)))
	}
	if res.Workspace.Preserved {
		next = append(next, fmt.Sprintf("cd %s", text.Quote(res.Workspace.Path)))
		own("workspace end")
	}
	return next
}

// self is how superqode is called from here for an origin: with the folders that
// this call was given, too.
func (a *app) self(origin string) string {
	words := []string{"superqode"}
	if dir := originDir(a.Dir); dir != origin {
		words = append(words, "-C", text.Quote(origin))
	}
	if a.flags.Home != "" {
		words = append(words, "--home", text.Quote(a.flags.Home))
	}
	return strings.Join(words, " ")
}
