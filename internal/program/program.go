// Package program runs one program, or several one after the other, in the workspace
// of a session, and keeps their record: environment, limits, logs, what goes on
// beside the program (claims, watching), and what the programs must not touch.
package program

import (
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/custody"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/site"
)

// Program runs programs in one session's workspace, one or several at a time, and
// keeps their record.
type Program struct {
	*site.Site
	Authors *attribution.Authorship // keeps what agents say of their edits

	custody *custody.Custody // while a program runs
}

// Wrote tells of lines of findings.jsonl that superqode itself has written while a
// program runs.
func (s *Program) Wrote(lines []byte) { s.custody.Wrote(lines) }

// Findings is what the session's programs found.
func (s *Program) Findings() *findings.Book {
	b := findings.Open(s.Site)
	b.Wrote = s.Wrote
	return b
}
