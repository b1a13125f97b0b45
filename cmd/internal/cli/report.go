package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/text"
)

// reportCmd prints a session's report.
type reportCmd struct {
	sessionFlag
	Format   string `default:"md" enum:"md,json,html,sarif,junit,summary" placeholder:"FORMAT" help:"md, json, html, sarif, junit, or summary: a short one for a workflow's step."`
	Output   string `short:"o" placeholder:"FILE" sep:"none" help:"Write to FILE."`
	NoRedact bool   `help:"Show secrets."`
	Schema   string `enum:"qr,result," default:"" placeholder:"NAME" help:"Print a JSON Schema instead: qr of this report, result of what run --json prints."`
}

// Help gives an example for continuous integration.
func (*reportCmd) Help() string {
	return "In a GitHub workflow: superqode report --format summary >> \"$GITHUB_STEP_SUMMARY\". The values of secrets are masked in every format; --no-redact shows them as long as the session's own folder is there."
}

// Run prints the report that the session's end wrote.
func (c *reportCmd) Run(ctx context.Context, a *app) error {
	if c.Schema != "" {
		data, err := artifacts.Schema(c.Schema)
		if err != nil {
			return err
		}
		return c.print(a, data, true)
	}
	m, err := a.sessions()
	if err != nil {
		return err
	}
	ref := c.ref(a)
	if ref == "" {
		if ref, err = a.newestEnded(ctx); err != nil {
			return err
		}
	}
	format := report.Format(c.Format)
	if a.flags.JSON {
		format = report.FormatJSON
	}
	var b bytes.Buffer
	if err := m.Report(ctx, a.flags.Repo, ref, report.ShowOptions{Format: format, NoRedact: c.NoRedact}, &b); err != nil {
		return err
	}
	return c.print(a, b.Bytes(), format != report.FormatMD && format != report.FormatSummary)
}

// print writes the report into the file, or to stdout, made safe on a terminal.
func (c *reportCmd) print(a *app, data []byte, exact bool) error {
	if c.Output != "" && c.Output != "-" {
		return writeOutput(a.abs(c.Output), data)
	}
	if !a.outTTY || exact {
		_, err := a.Out.Write(data)
		return err
	}
	w := bufio.NewWriter(a.Out)
	p := &patchWriter{w: w}
	if _, err := p.Write(data); err != nil {
		return err
	}
	return errors.Join(p.Close(), w.Flush())
}

// writeOutput writes a file whole or not at all. Where a link leads to a file, the
// file is written; a device or a pipe is written to, and stays what it is.
func writeOutput(path string, data []byte) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		if dir := filepath.Dir(path); !isFolder(dir) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "--output: the folder %s does not exist", text.Printable(dir)), "mkdir -p %s", text.Quote(dir))
		}
		return atomicfile.Write(path, data, 0o644)
	case st.IsDir():
		return superqode.Errorf(superqode.ErrUsage, "--output: %s is a folder", text.Printable(path))
	case st.Mode().IsRegular():
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return atomicfile.Write(path, data, 0o644)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// newestEnded returns the id of the session of this origin that ended last; where
// cleanup took them all, of the one that left the last report.
func (a *app) newestEnded(ctx context.Context) (string, error) {
	m, err := a.sessions()
	if err != nil {
		return "", err
	}
	sessions, _, err := m.List(ctx, a.flags.Repo, false)
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		if s.State.Ended() && !s.Trial {
			return s.ID.String(), nil
		}
	}
	last, err := m.AttachReported(ctx, a.flags.Repo, "")
	if err != nil {
		return "", err
	}
	return last.Record().ID.String(), nil
}

// stepSummary appends a session's summary to the one of a workflow's step where
// that was asked for.
func (a *app) stepSummary(ctx context.Context, formats []string, id superqode.SessionID) error {
	if !slices.Contains(formats, string(report.FormatSummary)) {
		return nil
	}
	m, err := a.sessions()
	if err != nil {
		return err
	}
	return m.AppendStepSummary(ctx, a.flags.Repo, id.String())
}
