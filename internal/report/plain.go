package report

import (
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// plain is s on one line of plain text, for readers that are programs: what can
// not be seen is escaped as Go does.
func plain(s string) string { return text.Printable(text.Clip(s, maxShown)) }

// plainLines is plain for a text whose lines and tabs stay.
func plainLines(s string) string {
	lines := strings.Split(text.Clip(strings.TrimRight(s, "\n"), maxBlock), "\n")
	for i, line := range lines {
		line = strings.ReplaceAll(line, "##[", `#\x23[`) // a workflow command of Azure, anywhere in a line
		lines[i] = text.PrintableLines(noCommand(strings.TrimSuffix(line, "\r")))
	}
	return strings.Join(lines, "\n")
}

// workflowCommand reports whether a line is a command of GitHub's workflows; rest is
// what follows its first colon.
func workflowCommand(line string) (indent, rest string, ok bool) {
	t := strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(t, "::") {
		return "", "", false
	}
	return line[:len(line)-len(t)], t[1:], true
}

// noCommand is a line that GitHub's workflows do not take for a command.
func noCommand(line string) string {
	if indent, rest, ok := workflowCommand(line); ok {
		return indent + `\x3a` + rest
	}
	return line
}

func plainTime(t artifacts.Time) string { return t.UTC().Format(time.RFC3339Nano) }
