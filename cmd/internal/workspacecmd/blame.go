package workspacecmd

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Blame prints who wrote each line of a file.
type Blame struct {
	app.SessionFlag
	File string `arg:"" name:"file" sep:"none" help:"The file, relative to the current directory."`
}

type blamedJSON struct {
	Line      int                `json:"line"`
	Author    attribution.Author `json:"author"` // base, agent or unknown
	AgentID   superqode.AgentID  `json:"agent_id"`
	FirstSeen string             `json:"first_seen"`
	BaseLine  int                `json:"base_line"` // 0 for a new line
	Text      string             `json:"text"`
	TextBytes string             `json:"text_bytes,omitempty"` // base64, of a line that is not UTF-8
}

// Run prints a line for each line; for a binary file it says whose that is.
func (c *Blame) Run(ctx context.Context, a *app.App, s *life.Session) error {
	paths, err := app.RelPaths(a, s.Record(), []string{c.File})
	if err != nil {
		return err
	}
	if len(paths) != 1 {
		return superqode.Errorf(superqode.ErrUsage, "%s is a folder; blame takes a file", text.Printable(c.File))
	}
	b, err := s.Blame(ctx, paths[0])
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return printBlameJSON(a, s.Record().ID, b)
	}
	if b.Binary || b.Link {
		what := "a binary file"
		if b.Link {
			what = "a symbolic link"
		}
		return a.Line("%s  (%s) %s", wholeAuthor(b), what, text.QuotePath(b.Path.String()))
	}
	w := bufio.NewWriter(a.Out)
	width := 0
	for _, l := range b.Lines {
		width = max(width, len(l.String()))
	}
	digits := len(fmt.Sprint(len(b.Lines)))
	for i, l := range b.Lines {
		seen := "        "
		if !l.FirstSeen.IsZero() {
			seen = l.FirstSeen.Local().Format(time.TimeOnly)
		}
		line := string(l.Text)
		if a.OutTTY {
			line = text.Printable(line)
		}
		fmt.Fprintf(w, "%s %s %*d) %s\n", term.Padded(l.String(), width), seen, digits, i+1, line)
	}
	return w.Flush()
}

// wholeAuthor names who changed a file that has no lines.
func wholeAuthor(b *attribution.Blame) string {
	switch {
	case !b.Changed:
		return string(attribution.AuthorBase)
	case len(b.Agents) == 0:
		return string(attribution.AuthorUnknown)
	}
	return agentNames(b.Agents)
}

func printBlameJSON(a *app.App, id superqode.SessionID, b *attribution.Blame) error {
	var lines []blamedJSON
	for i, l := range b.Lines {
		j := blamedJSON{Line: i + 1, Author: l.Author, AgentID: l.Agent, BaseLine: l.BaseLine, Text: string(l.Text)}
		if !utf8.Valid(l.Text) {
			j.Text, j.TextBytes = string([]rune(string(l.Text))), base64.StdEncoding.EncodeToString(l.Text)
		}
		if !l.FirstSeen.IsZero() {
			j.FirstSeen = l.FirstSeen.UTC().Format(time.RFC3339Nano)
		}
		lines = append(lines, j)
	}
	path, exact := superqode.JSONPath(b.Path.String())
	old, _ := superqode.JSONPath(b.OldPath.String())
	fields := []any{"session_id", id, "path", path}
	if exact != "" {
		fields = append(fields, "path_bytes", exact)
	}
	return a.PrintFields(append(fields, "old_path", old, "binary", b.Binary, "changed", b.Changed,
		"agents", b.Agents, "lines", lines)...)
}
