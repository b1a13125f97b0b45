package artifactcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/text"
)

// FindingAdd adds one finding from flags, or many from stdin.
type FindingAdd struct {
	app.SessionFlag
	Severity     string   `predictor:"severity" placeholder:"LEVEL" help:"critical, high, medium, low or info."`
	Title        string   `help:"The finding in one line."`
	File         string   `sep:"none" help:"The file, relative to the current directory or to the top."`
	Line         string   `placeholder:"N[-M]" help:"The line or lines."`
	Category     string   `help:"The category."`
	Description  string   `help:"A detailed description."`
	Evidence     string   `help:"Evidence for the finding."`
	SuggestedFix string   `help:"A suggested fix, in words."`
	Patch        string   `placeholder:"FILE" sep:"none" help:"A patch that fixes it; it must apply to the session's base."`
	PatchID      string   `placeholder:"ID" help:"The artifact that holds a fix."`
	Priority     *int     `placeholder:"0-3" help:"The priority; 0 is the highest."`
	Confidence   *float64 `placeholder:"0-1" help:"The confidence."`
	FoundBy      string   `placeholder:"NAME" help:"Who found it (default: the agent)."`
	Rule         string   `placeholder:"ID" help:"The rule of the tool that found it."`
	ID           string   `name:"id" help:"The finding's id (default: finding-001, …)."`
	Tag          []string `placeholder:"TAG" sep:"none" help:"A tag (repeatable)."`
	Stdin        string   `arg:"" optional:"" name:"-" help:"Read findings from stdin, one JSON object per line."`
}

// findingAdder is the way in for findings.
type findingAdder struct {
	add   func(context.Context, []json.RawMessage) ([]findings.Added, error)
	patch func(ctx context.Context, finding string, data []byte) error
	done  func()
}

// Run prints the id of each finding.
func (c *FindingAdd) Run(ctx context.Context, a *app.App) error {
	if c.Stdin != "" && c.Stdin != "-" {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "unexpected argument %s", text.Quote(c.Stdin)),
			"superqode finding add --severity high --title %s", text.QuotePOSIX(c.Stdin))
	}
	if c.Stdin == "-" && (c.Severity != "" || c.Title != "" || c.Patch != "") {
		return superqode.Errorf(superqode.ErrUsage, "findings come from stdin or from flags, not from both")
	}
	var patch []byte
	if c.Patch != "" {
		var err error
		if patch, err = readPatch(a.Abs(c.Patch)); err != nil {
			return err
		}
	}
	to, err := c.adder(ctx, a)
	if err != nil {
		return err
	}
	defer to.done()
	if c.Stdin == "-" {
		return addStream(ctx, a, to)
	}
	raw, err := c.json(a)
	if err != nil {
		return err
	}
	list, err := to.add(ctx, []json.RawMessage{raw})
	if err != nil {
		return err
	}
	if err := list[0].Err; err != nil {
		return superqode.Errorf(superqode.ErrUsage, "finding: %s", err)
	}
	if patch != nil {
		if err := to.patch(ctx, list[0].ID, patch); err != nil {
			return fmt.Errorf("added finding %s without its patch: %w", list[0].ID, err)
		}
	}
	return printAdded(a, list[0].ID)
}

// maxPatch bounds the patch of a finding, as the session's end does.
const maxPatch = 16 << 20

func readPatch(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, superqode.Errorf(superqode.ErrNotFound, "--patch: %s does not exist", path)
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, superqode.Errorf(superqode.ErrUsage, "--patch: %s is not a regular file", path)
	case st.Size() > maxPatch:
		return nil, superqode.Errorf(superqode.ErrUsage, "--patch: %s has more than %s", path, text.Size(maxPatch))
	}
	return atomicfile.ReadThrough(path)
}

// adder chooses the way in: the supervisor for a program inside a session, the
// session's own files for a person outside.
func (c *FindingAdd) adder(ctx context.Context, a *app.App) (findingAdder, error) {
	if c.Session == "" && a.Getenv("SUPERQODE_SOCKET") != "" {
		return findingAdder{
			add: func(ctx context.Context, raws []json.RawMessage) ([]findings.Added, error) {
				return findings.Send(ctx, a.Env, raws)
			},
			patch: func(_ context.Context, finding string, data []byte) error {
				return staging.LeaveFix(a.Getenv("SUPERQODE_ARTIFACT_DIR"), finding, data)
			},
			done: func() {},
		}, nil
	}
	s, err := c.AttachEnded(ctx, a)
	if err != nil {
		return findingAdder{}, err
	}
	return findingAdder{add: s.Findings().AddAll, patch: s.Findings().AddFix, done: func() { _ = s.Close() }}, nil
}

func printAdded(a *app.App, id string) error {
	if a.Flags.JSON {
		return a.PrintLine(map[string]any{"schema_version": 1, "id": id}) // one of several, and an error may follow
	}
	return a.Line("%s", id)
}

// json writes the flags in the shape of superqode-qr-v1.
func (c *FindingAdd) json(a *app.App) (json.RawMessage, error) {
	if c.Severity == "" || c.Title == "" {
		err := superqode.Errorf(superqode.ErrUsage, "a finding requires --severity and --title")
		return nil, superqode.WithHint(err, "superqode finding add --severity high --title 'What is wrong'")
	}
	doc := map[string]any{"severity": c.Severity, "title": c.Title}
	for key, value := range map[string]string{
		"category": c.Category, "description": c.Description, "evidence": c.Evidence, "suggested_fix": c.SuggestedFix,
		"patch_id": c.PatchID, "found_by": c.FoundBy, "rule_id": c.Rule, "id": c.ID,
	} {
		if value != "" {
			doc[key] = value
		}
	}
	if file := c.file(a); file != "" { // its bytes, whatever they are
		doc["file_path"], doc["file_path_bytes"] = file, []byte(file)
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

// file returns --file as a path below the top of the workspace or the origin. As
// for git it is one from where the person stands; a program that stands in a
// sub-folder may as well name one from the top, when there is no other.
func (c *FindingAdd) file(a *app.App) string {
	full := a.Abs(c.File)
	_, err := os.Lstat(full)
	if c.File == "" || filepath.IsAbs(c.File) || err != nil && !strings.HasPrefix(c.File, "../") {
		return c.File
	}
	dir := filepath.Dir(full)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, root := range []string{a.Getenv("SUPERQODE_WORKSPACE"), app.OriginDir(a.Flags.Repo)} {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		if rel, err := filepath.Rel(root, dir); err == nil && root != "" && filepath.IsLocal(rel) {
			return filepath.Join(rel, filepath.Base(full))
		}
	}
	return c.File
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

// FindingList lists findings.
type FindingList struct {
	app.SessionFlag
	Severity []string `predictor:"severity" placeholder:"LEVEL" help:"Only list these severities (repeatable, or separated by commas)."`
}

// Run prints a table in the order in which they were found.
func (c *FindingList) Run(ctx context.Context, a *app.App) error {
	var wanted []artifacts.Severity
	for _, v := range c.Severity {
		s, err := artifacts.ParseSeverity(v)
		if err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--severity: %s", err)
		}
		wanted = append(wanted, s)
	}
	s, err := c.AttachReported(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := s.Findings().List(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(f artifacts.Finding) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, f.Severity)
	})
	if a.Flags.JSON {
		return a.PrintFields("session_id", s.Record().ID, "findings", list)
	}
	if len(list) == 0 {
		a.Note("no findings")
		return nil
	}
	rows := app.Rows(list, func(f artifacts.Finding) []string {
		title := text.Printable(f.Title)
		if f.Suppressed != nil {
			title = "(suppressed: " + text.Printable(f.Suppressed.Reason) + ") " + title
		}
		return []string{
			text.Printable(f.ID), string(f.Severity), fmt.Sprintf("P%d", f.Priority), fingerprint(a, f),
			text.Printable(cmp.Or(f.Location(), "-")), title,
		}
	})
	return a.Table([]string{"ID", "SEVERITY", "PRIO", "FINGERPRINT", "LOCATION", "TITLE"}, rows)
}

// fingerprint is whole in a file or on a wide terminal; on another one its
// beginning, which suppress takes as well, leaves room for the title.
func fingerprint(a *app.App, f artifacts.Finding) string {
	const wide, enough = 110, 8
	if a.OutTTY && a.TerminalWidth() < wide {
		return f.Fingerprint()[:enough]
	}
	return f.Fingerprint()
}
