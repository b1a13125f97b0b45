package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// maxSummary is what a step may write to its summary, a little less than GitHub's
// limit of 1 MiB: a summary that is longer is not shown at all.
const maxSummary = 1000 << 10

// maxSummaryRows bounds each table: the summary is for a glance.
const maxSummaryRows = 50

// StepSummary writes the report as GitHub-flavoured Markdown for a workflow's
// step: what a person wants to see first, with the lists folded.
func StepSummary(w io.Writer, rep artifacts.Report) error {
	var b strings.Builder
	icon := map[artifacts.Verdict]string{
		artifacts.VerdictPass: "white_check_mark", artifacts.VerdictConditional: "warning", artifacts.VerdictFail: "x", artifacts.VerdictBlocked: "no_entry",
	}[rep.Verdict]
	fmt.Fprintf(&b, "## :%s: superqode: %s\n\n%s\n\n", icon, rep.Verdict, artifacts.MarkdownText(rep.Explanation))
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	row("Command", artifacts.MarkdownCell(text.QuoteLine(rep.Run.Command...)))
	outcome := fmt.Sprintf("exit code %d after %s", rep.Run.ExitCode, text.Took(rep.DurationSeconds))
	if rep.Run.TimedOut {
		outcome += ", timed out"
	}
	row("Outcome", outcome)
	added, removed := 0, 0
	for _, c := range rep.Changes {
		added, removed = added+max(c.LinesAdded, 0), removed+max(c.LinesRemoved, 0)
	}
	row("Changes", fmt.Sprintf("%s, +%d −%d lines", text.Plural(len(rep.Changes), "path"), added, removed))
	row("Findings", findingCounts(rep))
	row("Blocked operations", fmt.Sprint(len(rep.Guard.Blocked)))
	row("Reverted", checkWord(rep.Revert.Verified, len(rep.Revert.Differences), "verified"))
	row("Origin", checkWord(rep.OriginCheck.Unchanged, len(rep.OriginCheck.Differences), "unchanged"))
	row("Session", artifacts.MarkdownCell(rep.SessionID.String()))
	b.WriteByte('\n')
	summaryNotes(&b, rep)
	summaryFindings(&b, rep)
	summaryChanges(&b, rep)
	summaryBlocked(&b, rep)
	out := b.String()
	if len(out) > maxSummary { // cells are bounded, so this takes a report made to be long
		out = strings.ToValidUTF8(out[:maxSummary], "") + "\n\n… cut; the report has all of it.\n"
	}
	_, err := io.WriteString(w, out)
	return err
}

func findingCounts(rep artifacts.Report) string {
	s := rep.Summary.BySeverity
	var parts []string
	for _, c := range []struct {
		n    int
		name string
	}{{s.Critical, "critical"}, {s.High, "high"}, {s.Medium, "medium"}, {s.Low, "low"}, {s.Info, "info"}, {rep.Summary.Suppressed, "suppressed"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// checkWord says how a check ended; one that found nothing and did not hold was
// not made.
func checkWord(held bool, differences int, good string) string {
	switch {
	case differences > 0:
		return fmt.Sprintf("**not %s**: %s", good, text.Plural(differences, "difference"))
	case held:
		return good
	}
	return "not checked"
}

func summaryNotes(b *strings.Builder, rep artifacts.Report) {
	for _, l := range []struct {
		title string
		list  []string
	}{{"Errors", rep.Run.Errors}, {"Warnings", rep.Run.Warnings}} {
		if len(l.list) == 0 {
			continue
		}
		fmt.Fprintf(b, "**%s**\n\n", l.title)
		for _, e := range l.list[:min(len(l.list), maxSummaryRows)] {
			fmt.Fprintf(b, "- %s\n", artifacts.MarkdownCode(e))
		}
		b.WriteByte('\n')
	}
}

// folded writes a table inside an element that opens on a click.
func folded(b *strings.Builder, title, header string, n int, row func(i int) []string) {
	if n == 0 {
		return
	}
	columns := strings.Count(header, "|") - 1
	fmt.Fprintf(b, "<details><summary>%s</summary>\n\n%s\n%s|\n", title, header, strings.Repeat("|---", columns))
	for i := range min(n, maxSummaryRows) {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row(i), " | "))
	}
	if n > maxSummaryRows {
		fmt.Fprintf(b, "\n… and %d more in the report.\n", n-maxSummaryRows)
	}
	b.WriteString("\n</details>\n\n")
}

func summaryFindings(b *strings.Builder, rep artifacts.Report) {
	list := slices.Clone(rep.Findings)
	order := artifacts.Severities()
	slices.SortStableFunc(list, func(x, y artifacts.Finding) int {
		return slices.Index(order, x.Severity) - slices.Index(order, y.Severity)
	})
	folded(b, text.Plural(len(list), "finding"), "| severity | finding | at | found by |", len(list), func(i int) []string {
		f := list[i]
		return []string{string(f.Severity), artifacts.MarkdownCell(text.Clip(f.Title, 300)), artifacts.MarkdownCell(text.Clip(f.Location(), 300)), artifacts.MarkdownText(text.Clip(f.FoundBy, 100))}
	})
}

func summaryChanges(b *strings.Builder, rep artifacts.Report) {
	folded(b, text.Plural(len(rep.Changes), "changed path"), "| type | path | lines |", len(rep.Changes), func(i int) []string {
		c := rep.Changes[i]
		lines := fmt.Sprintf("+%d −%d", max(c.LinesAdded, 0), max(c.LinesRemoved, 0))
		if c.Binary {
			lines = "binary"
		}
		return []string{artifacts.MarkdownText(string(c.Type)), artifacts.MarkdownCell(text.Clip(c.Path.String(), 500)), lines}
	})
}

func summaryBlocked(b *strings.Builder, rep artifacts.Report) {
	list := rep.Guard.Blocked
	folded(b, text.Plural(len(list), "blocked operation"), "| operation | command | layer |", len(list), func(i int) []string {
		return []string{artifacts.MarkdownCell(text.Clip(list[i].Operation, 100)), artifacts.MarkdownCell(text.Clip(text.QuoteLine(list[i].Command...), 300)), artifacts.MarkdownText(list[i].Layer)}
	})
}
