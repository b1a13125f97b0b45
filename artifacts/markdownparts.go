package artifacts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/text"
)

func (r Report) writeFindings(m *markdown) {
	m.line("## Findings: %d\n", len(r.Findings))
	list := slices.Clone(r.Findings)
	order := Severities()
	slices.SortStableFunc(list, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	for _, f := range list[:min(len(list), maxRows)] {
		m.line("### %s: %s\n", prose(string(f.Severity)), prose(f.Title))
		facts := []string{"P" + fmt.Sprint(f.Priority), code(f.ID)}
		if f.File != "" {
			facts = append(facts, "at "+code(f.Location()))
		}
		if f.Category != "" {
			facts = append(facts, prose(f.Category))
		}
		if f.FoundBy != "" {
			facts = append(facts, "found by "+prose(f.FoundBy))
		}
		if f.Confidence != nil {
			facts = append(facts, fmt.Sprintf("confidence %.2f", *f.Confidence))
		}
		if f.RuleID != "" {
			facts = append(facts, "rule "+code(f.RuleID))
		}
		if f.PatchID != "" {
			facts = append(facts, "patch "+code(f.PatchID))
		}
		if len(f.Tags) > 0 {
			facts = append(facts, "tagged "+code(strings.Join(f.Tags, " ")))
		}
		facts = append(facts, "fingerprint "+code(f.Fingerprint()))
		m.line("%s\n", strings.Join(facts, ", "))
		for _, part := range []struct{ title, body string }{
			{"", f.Description}, {"Evidence:\n\n", f.Evidence}, {"Suggested fix:\n\n", f.SuggestedFix},
		} {
			if strings.TrimSpace(part.body) != "" {
				m.line("%s%s", part.title, block("text", part.body))
			}
		}
	}
	m.more(len(list))
}

// writeSuppressed lists what was found and does not count.
func (r Report) writeSuppressed(m *markdown) {
	if len(r.Suppressed) == 0 {
		return
	}
	m.line("## Suppressed findings: %d\n\nThey count nowhere.\n", len(r.Suppressed))
	m.line("| finding | severity | at | reason | fingerprint |\n|---|---|---|---|---|")
	for _, f := range r.Suppressed[:min(len(r.Suppressed), maxRows)] {
		m.line("| %s | %s | %s | %s | %s |", cell(f.Title), prose(string(f.Severity)), cell(f.Location()), cell(f.Suppressed.Reason), cell(f.Fingerprint()))
	}
	m.more(len(r.Suppressed))
	m.line("")
}

// writeFixes tells how tried fixes fared.
func (r Report) writeFixes(m *markdown) {
	fixes := r.VerifiedFixes
	if fixes == nil || len(fixes.Fixes) == 0 {
		return
	}
	m.line("## Fixes: %d tried, %d verified\n", len(fixes.Fixes), fixes.Verified)
	m.line("| finding | patch | verified | mends something | evidence |\n|---|---|---|---|---|")
	for _, f := range fixes.Fixes[:min(len(fixes.Fixes), maxRows)] {
		m.line("| %s | %s | %s | %s | %s |", cell(f.FindingID), cell(f.PatchID), yes(f.Verified), yes(f.Improvement), cell(f.Evidence))
	}
	m.more(len(fixes.Fixes))
	m.line("")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}

// writeSetup shows what was made ready before the program ran.
func (r Report) writeSetup(m *markdown) {
	if len(r.Run.Setup) == 0 {
		return
	}
	m.line("## Setup: %d steps\n", len(r.Run.Setup))
	m.line("| step | kind | state | exit code | seconds |\n|---|---|---|---:|---:|")
	for _, s := range r.Run.Setup[:min(len(r.Run.Setup), maxRows)] {
		state := prose(s.State)
		if s.Reason != "" {
			state += ": " + prose(s.Reason)
		}
		m.line("| %s | %s | %s | %d | %.1f |", cell(s.Name), prose(s.Kind), state, s.ExitCode, s.DurationSeconds)
	}
	m.more(len(r.Run.Setup))
	m.line("")
	for _, s := range r.Run.Setup[:min(len(r.Run.Setup), maxRows)] {
		if s.State == "failed" || s.State == "optional_failed" {
			m.output(code(s.Name), s.Output)
		}
	}
}

// output shows the last lines of what a command printed; name is Markdown.
func (m *markdown) output(name, s string) {
	if strings.TrimSpace(s) != "" {
		m.line("Output of %s:\n\n%s", name, block("text", s))
	}
}

// writeCommands lists every program that ran, where there were several or one
// left a word.
func (r Report) writeCommands(m *markdown) {
	list := r.Run.Commands
	if len(list) == 0 {
		return
	}
	m.line("## Commands: %d\n", len(list))
	m.line("| run | command | agent | exit code | seconds | output bytes | ended by |\n|---:|---|---|---:|---:|---:|---|")
	for _, c := range list[:min(len(list), maxRows)] {
		by := ""
		switch {
		case c.Limit != "":
			by = "limit: " + prose(c.Limit)
		case c.TimedOut:
			by = "time-out"
		}
		m.line("| %d | %s | %s | %d | %.1f | %d | %s |", c.Run, cell(text.QuoteLine(c.Command...)), prose(c.Agent.String()), c.ExitCode, c.DurationSeconds, c.OutputBytes, by)
	}
	m.more(len(list))
	m.line("")
	for _, c := range list[:min(len(list), maxRows)] {
		if c.ExitCode != 0 || len(list) == 1 {
			name := fmt.Sprintf("run %d", c.Run)
			if !c.Agent.IsZero() {
				name += ", " + prose(c.Agent.String())
			}
			m.output(name, c.Output)
		}
	}
}

// writeAgents shows each agent's part of a session of several.
func (r Report) writeAgents(m *markdown) {
	list := r.Run.Agents
	if len(list) == 0 {
		return
	}
	m.line("## Agents: %d\n", len(list))
	m.line("| agent | command | exit code | took | changes | conflicts | patch |\n|---|---|---:|---:|---:|---|---|")
	for _, a := range list[:min(len(list), maxRows)] {
		exit := fmt.Sprint(a.ExitCode)
		if a.TimedOut {
			exit += ", timed out"
		}
		var conflicts []string
		for _, c := range a.Conflicts[:min(len(a.Conflicts), 5)] {
			conflicts = append(conflicts, cell(c))
		}
		if n := len(a.Conflicts) - len(conflicts); n > 0 {
			conflicts = append(conflicts, fmt.Sprintf("and %d more", n))
		}
		patch := ""
		if a.Patch != "" {
			patch = cell(a.Patch)
		}
		took := time.Duration(a.DurationSeconds * float64(time.Second)).Round(100 * time.Millisecond)
		m.line("| %s | %s | %s | %s | %d | %s | %s |", cell(a.Agent.String()), cell(a.Command), exit, took, len(a.Changes), strings.Join(conflicts, ", "), patch)
	}
	m.more(len(list))
	m.line("")
}
