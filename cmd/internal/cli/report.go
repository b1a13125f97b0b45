package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// reportCmd prints a session's report.
type reportCmd struct {
	sessionFlag
	Format string `default:"md" enum:"md,json,html,sarif,junit" placeholder:"FORMAT" help:"md, json, html, sarif or junit."`
	Output string `short:"o" placeholder:"FILE" sep:"none" help:"Write to FILE."`
}

// Run prints the report that the session's end wrote.
func (c *reportCmd) Run(ctx context.Context, a *app) error {
	m, err := a.sessions()
	if err != nil {
		return err
	}
	ref := c.ref(a)
	if ref == "" {
		if ref, err = c.newest(ctx, a); err != nil {
			return err
		}
	}
	format := c.Format
	if a.flags.JSON {
		format = "json"
	}
	data, err := m.Report(ctx, a.flags.Repo, ref, format)
	if err != nil {
		return err
	}
	if c.Output != "" {
		return atomicfile.Write(a.abs(c.Output), data, 0o644)
	}
	if !a.outTTY || format == "json" {
		_, err = a.Out.Write(data)
		return err
	}
	w := bufio.NewWriter(a.Out)
	p := &patchWriter{w: w}
	if _, err := p.Write(data); err != nil {
		return err
	}
	return errors.Join(p.Close(), w.Flush())
}

// newest returns the id of the session of this origin that ended last.
func (c *reportCmd) newest(ctx context.Context, a *app) (string, error) {
	m, err := a.sessions()
	if err != nil {
		return "", err
	}
	sessions, _, err := m.List(ctx, a.flags.Repo, false)
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		if s.State.Ended() {
			return s.ID.String(), nil
		}
	}
	return "", superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session of this origin has ended"), "superqode workspace list")
}
