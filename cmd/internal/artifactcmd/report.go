package artifactcmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Report prints a session's report.
type Report struct {
	app.SessionFlag
	Format   string `default:"md" enum:"md,json,html,sarif,junit,summary" placeholder:"FORMAT" help:"md, json, html, sarif, junit, or summary (short, for a workflow step)."`
	Output   string `predictor:"file" short:"o" placeholder:"FILE" sep:"none" help:"Write to FILE instead of stdout."`
	NoRedact bool   `help:"Do not mask secrets."`
	Schema   string `enum:"qr,result," default:"" placeholder:"NAME" help:"Print a JSON Schema instead: qr (this report) or result (the output of run --json)."`
}

// Run prints the report that the session's end wrote.
func (c *Report) Run(ctx context.Context, a *app.App) error {
	if c.Schema != "" {
		data, err := artifacts.Schema(c.Schema)
		if err != nil {
			return err
		}
		return c.print(a, data, true)
	}
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	ref := c.Ref(a)
	if ref == "" {
		if ref, err = a.NewestEnded(ctx); err != nil {
			return err
		}
	}
	format := report.Format(c.Format)
	if a.Flags.JSON {
		format = report.FormatJSON
	}
	var b bytes.Buffer
	opt := report.ShowOptions{Format: format, NoRedact: c.NoRedact}
	if err := m.Report(ctx, a.Flags.Repo, ref, opt, &b); err != nil {
		return err
	}
	return c.print(a, b.Bytes(), format != report.FormatMD && format != report.FormatSummary)
}

// print writes the report into the file, or to stdout, made safe on a terminal.
func (c *Report) print(a *app.App, data []byte, exact bool) error {
	if c.Output != "" && c.Output != "-" {
		return writeOutput(a.Abs(c.Output), data)
	}
	if !a.OutTTY || exact {
		_, err := a.Out.Write(data)
		return err
	}
	return a.ShowText(bytes.NewReader(data), false)
}

// writeOutput writes a file whole or not at all. Where a link leads to a file, the
// file is written; a device or a pipe is written to, and stays what it is.
func writeOutput(path string, data []byte) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		dir := filepath.Dir(path)
		if above, err := os.Stat(dir); err != nil || !above.IsDir() {
			err = superqode.Errorf(superqode.ErrNotFound, "--output: the folder %s does not exist", text.Printable(dir))
			return superqode.WithHint(err, "mkdir -p %s", text.Quote(dir))
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
