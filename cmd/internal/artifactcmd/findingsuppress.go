package artifactcmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/text"
)

// FindingSuppress enters a finding into the file of those that do not count.
type FindingSuppress struct {
	app.SessionFlag
	Finding string `predictor:"finding" arg:"" name:"fingerprint" help:"The finding's fingerprint, a prefix of it, or its id in the session."`
	Reason  string `help:"Why the finding does not count."`
	Expires string `placeholder:"DATE" help:"The day from which the finding counts again, for example 2026-12-31 (default: never)."`
}

// Run prints the fingerprint.
func (c *FindingSuppress) Run(ctx context.Context, a *app.App) error {
	if strings.TrimSpace(c.Reason) == "" {
		err := superqode.Errorf(superqode.ErrUsage, "a suppression requires --reason")
		return superqode.WithHint(err, "superqode finding suppress %s --reason 'Why it does not count'",
			text.QuotePath(c.Finding))
	}
	if _, err := time.Parse(time.DateOnly, c.Expires); c.Expires != "" && err != nil {
		return superqode.Errorf(superqode.ErrUsage, "--expires: %q is not a date like 2026-12-31", c.Expires)
	}
	entry := findings.Suppression{Fingerprint: c.Finding, Reason: c.Reason, Expires: c.Expires}
	return editSuppression(ctx, a, c.SessionFlag, suppressionEdit{
		ref:     c.Finding,
		done:    "entered into",
		session: func(b *findings.Book) (findings.Suppression, error) { return b.Suppress(ctx, c.Finding, entry) },
		file:    func(f findings.File) (findings.Suppression, error) { return f.Enter(ctx, entry) },
	})
}

// FindingUnsuppress takes a finding out of that file.
type FindingUnsuppress struct {
	app.SessionFlag
	Finding string `predictor:"finding" arg:"" name:"fingerprint" help:"The finding's fingerprint, a prefix of it, or its id in the session."`
}

// Run prints the fingerprint.
func (c *FindingUnsuppress) Run(ctx context.Context, a *app.App) error {
	return editSuppression(ctx, a, c.SessionFlag, suppressionEdit{
		ref:     c.Finding,
		done:    "taken out of",
		session: func(b *findings.Book) (findings.Suppression, error) { return b.Unsuppress(ctx, c.Finding) },
		file:    func(f findings.File) (findings.Suppression, error) { return f.Remove(ctx, c.Finding) },
	})
}

// suppressionEdit is one change of the file, with a session or without.
type suppressionEdit struct {
	ref     string // as it was given: a fingerprint, the beginning of one, or an id
	done    string
	session func(*findings.Book) (findings.Suppression, error)
	file    func(findings.File) (findings.Suppression, error)
}

// editSuppression makes the change and prints the fingerprint. A whole fingerprint needs no
// session, unless one is named.
func editSuppression(ctx context.Context, a *app.App, f app.SessionFlag, e suppressionEdit) error {
	if a.Getenv("SUPERQODE_SOCKET") != "" {
		return superqode.Errorf(superqode.ErrDenied, "a program in a session cannot suppress findings")
	}
	var entry findings.Suppression
	s, err := f.AttachReported(ctx, a)
	switch {
	case err == nil:
		defer s.Close()
		entry, err = e.session(s.Findings())
	case errors.Is(err, superqode.ErrNotFound) && f.Session == "" && artifacts.IsFingerprint(e.ref):
		entry, err = editSuppressions(ctx, a, e)
	}
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("fingerprint", entry.Fingerprint, "file", findings.SuppressionsFile)
	}
	a.Note("%s %s", e.done, findings.SuppressionsFile)
	return a.Line("%s", entry.Fingerprint)
}

func editSuppressions(ctx context.Context, a *app.App, e suppressionEdit) (findings.Suppression, error) {
	m, err := a.Sessions()
	if err != nil {
		return findings.Suppression{}, err
	}
	file, err := m.Suppressions(ctx, a.Flags.Repo)
	if err != nil {
		return findings.Suppression{}, err
	}
	return e.file(file)
}
