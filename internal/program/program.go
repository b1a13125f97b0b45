// Package program runs one program, or several one after the other, in the workspace
// of a session, and keeps their record: environment, limits, logs, what goes on
// beside the program (claims, watching), and what the programs must not touch.
package program

import (
	"context"
	"encoding/json"

	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/custody"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/site"
)

// Program runs programs in one session's workspace, one or several at a time, and
// keeps their record.
type Program struct {
	*site.Site
	Authors *attribution.Authorship                                            // keeps what agents say of their edits
	Found   func(context.Context, []json.RawMessage) ([]findings.Added, error) // keeps findings that a program reports

	custody *custody.Custody // while a program runs
	secrets []string         // environments of the programs that this process ran here, for what is to be masked
	masks   *redact.Redactor
}

// Wrote tells of lines of findings.jsonl that superqode itself has written while a
// program runs.
func (s *Program) Wrote(lines []byte) { s.custody.Wrote(lines) }
