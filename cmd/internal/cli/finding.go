package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/session"
)

// findingCmd groups the commands on findings.
type findingCmd struct {
	Add  findingAddCmd  `cmd:"" help:"Add a finding to the running session, or to --session."`
	List findingListCmd `cmd:"" help:"List a session's findings."`
}

// findingAddCmd adds one finding from flags, or many from stdin.
type findingAddCmd struct {
	sessionFlag
	Severity     string   `placeholder:"LEVEL" help:"critical, high, medium, low or info."`
	Title        string   `help:"The finding in one line."`
	File         string   `sep:"none" help:"The file it is about."`
	Line         string   `placeholder:"N[-M]" help:"The lines it is about."`
	Category     string   `help:"What kind of finding."`
	Description  string   `help:"The finding at length."`
	Evidence     string   `help:"What shows it."`
	SuggestedFix string   `help:"What would mend it."`
	Priority     *int     `placeholder:"0-3" help:"0 is the first to be done."`
	Confidence   *float64 `placeholder:"0-1" help:"How sure."`
	Tag          []string `placeholder:"TAG" sep:"none" help:"A tag (repeatable)."`
	Stdin        string   `arg:"" optional:"" enum:"-," default:"" name:"-" help:"Read findings from stdin, one JSON object a line."`
}

// maxFinding bounds one line of stdin, as the supervisor does.
const maxFinding = 1 << 20

// Run prints the id of each finding.
func (c *findingAddCmd) Run(ctx context.Context, a *app) error {
	add, done, err := c.adder(ctx, a)
	if err != nil {
		return err
	}
	defer done()
	if c.Stdin == "-" {
		return c.addStream(a, add)
	}
	raw, err := c.json()
	if err != nil {
		return err
	}
	return a.addOne(add, raw)
}

// adder chooses the way in: the supervisor for a program inside a session, the
// session's own files for a person outside.
func (c *findingAddCmd) adder(ctx context.Context, a *app) (add func(json.RawMessage) (string, error), done func(), err error) {
	if c.Session == "" && a.getenv("SUPERQODE_SOCKET") != "" {
		return func(raw json.RawMessage) (string, error) {
			var reply struct {
				ID string `json:"id"`
			}
			err := session.Call(ctx, a.Env, "finding.add", raw, &reply)
			return reply.ID, err
		}, func() {}, nil
	}
	s, err := c.attach(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	return func(raw json.RawMessage) (string, error) { return s.AddFinding(ctx, raw) }, func() { _ = s.Close() }, nil
}

// addStream adds every line and stops at the first that is no finding.
func (c *findingAddCmd) addStream(a *app, add func(json.RawMessage) (string, error)) error {
	lines := bufio.NewScanner(a.In)
	lines.Buffer(nil, maxFinding)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if err := a.addOne(add, json.RawMessage(line)); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return superqode.Errorf(superqode.ErrUsage, "a finding is longer than %d bytes", maxFinding)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (a *app) addOne(add func(json.RawMessage) (string, error), raw json.RawMessage) error {
	id, err := add(raw)
	if field, ok := errors.AsType[*artifacts.FieldError](err); ok {
		err = superqode.Errorf(superqode.ErrUsage, "finding: %s", field)
	}
	if err != nil {
		return err
	}
	if a.flags.JSON {
		return a.printJSON(map[string]any{"schema_version": 1, "id": id})
	}
	_, err = fmt.Fprintln(a.Out, id)
	return err
}

// json writes the flags in the shape of superqode-qr-v1.
func (c *findingAddCmd) json() (json.RawMessage, error) {
	if c.Severity == "" || c.Title == "" {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "a finding needs --severity and --title"), "superqode finding add --severity high --title 'What is wrong'")
	}
	doc := map[string]any{"severity": c.Severity, "title": c.Title}
	for key, value := range map[string]string{
		"file_path": c.File, "category": c.Category, "description": c.Description, "evidence": c.Evidence, "suggested_fix": c.SuggestedFix,
	} {
		if value != "" {
			doc[key] = value
		}
	}
	if c.Line != "" {
		lines, err := parseLines(c.Line)
		if err != nil {
			return nil, err
		}
		doc["line_range"] = lines
	}
	if c.Priority != nil {
		doc["priority"] = *c.Priority
	}
	if c.Confidence != nil {
		doc["confidence_score"] = *c.Confidence
	}
	if len(c.Tag) > 0 {
		doc["tags"] = c.Tag
	}
	return json.Marshal(doc)
}

// parseLines reads N or N-M.
func parseLines(s string) (artifacts.LineRange, error) {
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	start, err1 := strconv.Atoi(first)
	end, err2 := strconv.Atoi(last)
	if err := errors.Join(err1, err2); err != nil || start < 1 || end < start {
		return artifacts.LineRange{}, superqode.Errorf(superqode.ErrUsage, "--line: %q is not N or N-M", s)
	}
	return artifacts.LineRange{Start: start, End: end}, nil
}

// findingListCmd lists findings.
type findingListCmd struct{ sessionFlag }

// Run prints a table in the order in which they were found.
func (c *findingListCmd) Run(ctx context.Context, a *app) error {
	s, err := c.attach(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := s.Findings()
	if err != nil {
		return err
	}
	if a.flags.JSON {
		return a.printJSON(struct {
			SchemaVersion int                 `json:"schema_version"`
			Findings      []artifacts.Finding `json:"findings"`
		}{1, list})
	}
	rows := make([][]string, 0, len(list))
	for _, f := range list {
		rows = append(rows, []string{printable(f.ID), string(f.Severity), fmt.Sprintf("P%d", f.Priority), printable(orDash(f.Location())), printable(f.Title)})
	}
	return a.table([]string{"ID", "SEVERITY", "PRIO", "LOCATION", "TITLE"}, rows)
}
