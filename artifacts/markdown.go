package artifacts

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// maxRows bounds each table of the Markdown report; the JSON has every row.
const maxRows = 200

// markdown collects a report's text. Strings that come from a session go through
// code, cell, text or block, never in as they are.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(m, format, args...)
	m.WriteByte('\n')
}

// Markdown returns the report for people, readable on a terminal and on GitHub.
func (r Report) Markdown() string {
	m := &markdown{}
	m.line("# superqode report: %s\n", strings.ToUpper(string(r.Verdict)))
	m.line("%s\n", prose(r.Explanation))
	r.writeFacts(m)
	r.writeNotes(m)
	r.writeSetup(m)
	r.writeCommands(m)
	r.writeAgents(m)
	r.writeChanges(m)
	r.writeGuard(m)
	r.writeFindings(m)
	r.writeSuppressed(m)
	r.writeFixes(m)
	r.writeArtifacts(m)
	r.writeNext(m)
	return m.String()
}

func (r Report) writeFacts(m *markdown) {
	row := func(name, value string) { m.line("- %s: %s", name, value) }
	row("Session", code(r.SessionID.String()))
	row("Command", code(text.QuoteLine(r.Run.Command...)))
	outcome := fmt.Sprintf("exit code %d", r.Run.ExitCode)
	if r.Run.TimedOut {
		outcome += ", timed out"
	}
	row("Outcome", outcome)
	row("Origin check", differences("unchanged", r.OriginCheck.Unchanged, len(r.OriginCheck.Differences)))
	row("Revert", r.revertText())
	row("Mode", code(string(r.Mode))+", "+code(string(r.Run.State)))
	if len(r.Metadata.RolesUsed) > 0 {
		row("Agents", code(strings.Join(r.Metadata.RolesUsed, ", ")))
	}
	row("Started", moment(r.StartedAt))
	row("Ended", fmt.Sprintf("%s, after %s", moment(r.EndedAt), time.Duration(r.DurationSeconds*float64(time.Second)).Round(time.Millisecond)))
	row("Origin", code(r.Run.Origin))
	base := digest(r.Base.Digest) + fmt.Sprintf(", %s, %s", counted(r.Base.Files, "file"), counted(int(r.Base.Bytes), "byte"))
	if r.Base.Head != "" {
		base += ", HEAD " + code(r.Base.Head)
	}
	row("Base", base)
	row("Final", digest(r.Final.Digest))
	if r.Applied != nil {
		row("Applied", prose(r.Applied.Text())+" (after the check of the origin)")
	}
	if c := r.Commits; c != nil {
		row("Commits", prose(c.Text(r.SessionID)))
	}
	if r.Run.Workspace.Preserved {
		row("Workspace", "kept at "+code(r.Run.Workspace.Path))
	}
	if c := r.Coverage; c.Before != nil || c.After != nil {
		row("Coverage", fmt.Sprintf("%s → %s", percent(c.Before), percent(c.After)))
	}
	m.line("")
}

func (r Report) revertText() string {
	s := differences("verified", r.Revert.Verified, len(r.Revert.Differences))
	if r.Revert.Method != "" {
		s += " (" + prose(r.Revert.Method) + ")"
	}
	if !r.Revert.Digest.IsZero() {
		s += ", " + digest(r.Revert.Digest)
	}
	return s
}

// differences says how a check ended. A check that neither held nor found anything
// was not made.
func differences(good string, ok bool, n int) string {
	switch {
	case ok && n == 0:
		return good
	case n > 0:
		return fmt.Sprintf("**NOT %s**: %s", good, counted(n, "difference"))
	}
	return "not checked"
}

// writeNotes lists errors, warnings and what the checks found.
func (r Report) writeNotes(m *markdown) {
	for _, l := range []struct {
		title string
		list  []string
	}{
		{"Errors", r.Run.Errors}, {"Warnings", r.Run.Warnings},
		{"Not as before after the revert", r.Revert.Differences}, {"Differences in the origin", r.OriginCheck.Differences},
	} {
		if len(l.list) == 0 {
			continue
		}
		m.line("## %s\n", l.title)
		for _, s := range l.list[:min(len(l.list), maxRows)] {
			m.line("- %s", code(s))
		}
		m.more(len(l.list))
		m.line("")
	}
}

func (m *markdown) more(n int) {
	if n > maxRows {
		m.line("\n… and %d more, listed in the JSON report.", n-maxRows)
	}
}

func (r Report) writeChanges(m *markdown) {
	added, removed := 0, 0
	for _, c := range r.Changes {
		added, removed = added+max(c.LinesAdded, 0), removed+max(c.LinesRemoved, 0)
	}
	m.line("## Changes: %s, +%d −%d lines\n", counted(len(r.Changes), "path"), added, removed)
	if len(r.Changes) == 0 {
		m.line("Nothing changed.\n")
		return
	}
	m.line("| type | path | + | − | mode | agent |\n|---|---|---:|---:|---|---|")
	for _, c := range r.Changes[:min(len(r.Changes), maxRows)] {
		p := cell(c.Path.String())
		if !c.OldPath.IsZero() {
			p = cell(c.OldPath.String()) + " → " + p
		}
		plus, minus := count(c.LinesAdded), count(c.LinesRemoved)
		if c.Binary {
			plus, minus = "bin", "bin"
		}
		mode := ""
		if o, n := superqode.FormatMode(c.OldMode), superqode.FormatMode(c.NewMode); o != n && o != "" && n != "" {
			mode = o + " → " + n
		}
		m.line("| %s | %s | %s | %s | %s | %s |", prose(string(c.Type)), p, plus, minus, mode, prose(c.Agent.String()))
	}
	m.more(len(r.Changes))
	m.line("")
}

func (r Report) writeGuard(m *markdown) {
	l := r.Guard.Layers
	m.line("## Guard: %s blocked\n", counted(len(r.Guard.Blocked), "operation"))
	m.line("Layers: shim %s, hooks %s, kernel %s.\n", layer(l.Shim), layer(l.Hooks), layer(l.Kernel))
	if len(r.Guard.Blocked) == 0 {
		return
	}
	m.line("| operation | command | layer | at | agent |\n|---|---|---|---|---|")
	for _, b := range r.Guard.Blocked[:min(len(r.Guard.Blocked), maxRows)] {
		m.line("| %s | %s | %s | %s | %s |", cell(b.Operation), cell(text.QuoteLine(b.Command...)), prose(b.Layer), moment(b.At), prose(b.Agent.String()))
	}
	m.more(len(r.Guard.Blocked))
	m.line("")
}

func layer(s string) string {
	if s == "" {
		return "not known"
	}
	return prose(s)
}

func (r Report) writeArtifacts(m *markdown) {
	m.line("## Artifacts: %d\n", len(r.Run.Artifacts))
	if len(r.Run.Artifacts) == 0 {
		return
	}
	m.line("Paths are below %s.\n", code(filepath.Join(r.Run.Origin, dotName, storeName)))
	m.line("| id | type | path | bytes | sha256 |\n|---|---|---|---:|---|")
	for _, a := range r.Run.Artifacts[:min(len(r.Run.Artifacts), maxRows)] {
		m.line("| %s | %s | %s | %d | %s |", cell(a.ID), cell(string(a.Type)), cell(a.Path.String()), a.Size, cell(a.SHA256[:min(len(a.SHA256), 12)]))
	}
	m.more(len(r.Run.Artifacts))
	m.line("")
}

// writeNext gives the commands that a person is likely to want now.
func (r Report) writeNext(m *markdown) {
	m.line("## What to do next\n")
	id := r.SessionID.String()
	var cmds []string
	add := func(comment string, args ...string) { cmds = append(cmds, "# "+comment, text.QuoteLine(args...)) }
	if len(r.Changes) > 0 {
		add("look at the changes", "superqode", "-C", r.Run.Origin, "workspace", "diff", "--session", id)
		patch := path.Join(dotName, storeName, SessionPatch(r.SessionID))
		if r.Revert.Method != "none" && !r.Applied.Done() { // else they are there
			add("bring them into the origin, all or nothing, merged where it moved on", "superqode", "-C", r.Run.Origin, "workspace", "apply", "--session", id)
			add("the same with git alone", "git", "-C", r.Run.Origin, "apply", patch)
		}
	}
	if r.Run.Workspace.Preserved {
		add("the workspace is kept here", "cd", r.Run.Workspace.Path)
		add("end the session and remove it", "superqode", "-C", r.Run.Origin, "workspace", "end", "--session", id)
	}
	add("check that the artifacts are as recorded", "superqode", "-C", r.Run.Origin, "artifacts", "verify")
	body := strings.Join(cmds, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	m.line("%ssh\n%s\n%s", fence, body, fence)
}

func digest(d superqode.Digest) string {
	if d.IsZero() {
		return "not taken"
	}
	return code(d.String())
}

func moment(t Time) string {
	if t.IsZero() {
		return "not known"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func percent(v *float64) string {
	if v == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.1f %%", *v)
}

func count(n int) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprint(n)
}
