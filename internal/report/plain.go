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
	var b strings.Builder
	s = text.Clip(strings.TrimRight(s, "\n"), maxBlock)
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		line = strings.ReplaceAll(line, "##[", `#\x23[`)                    // a workflow command of Azure, anywhere in a line
		if t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, "::") { // one of GitHub's
			line = line[:len(line)-len(t)] + `\x3a` + t[1:]
		}
		for k, part := range strings.Split(strings.TrimSuffix(line, "\r"), "\t") {
			if k > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(text.Printable(part))
		}
	}
	return b.String()
}

func plainTime(t artifacts.Time) string { return t.UTC().Format(time.RFC3339Nano) }
