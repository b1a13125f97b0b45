package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/report"
)

// ReportFormat is a form in which a session's report can be had.
type ReportFormat string

// The formats. The first three are written for every session.
const (
	FormatJSON    ReportFormat = "json"
	FormatMD      ReportFormat = "md"
	FormatHTML    ReportFormat = "html"
	FormatSARIF   ReportFormat = "sarif"
	FormatJUnit   ReportFormat = "junit"
	FormatSummary ReportFormat = "summary"
)

// file returns where below qe-artifacts a session's report of this format stands.
func (f ReportFormat) file(id superqode.SessionID) string {
	switch f {
	case FormatJUnit:
		return artifacts.ReportFile(id, "junit.xml")
	case FormatSummary:
		return artifacts.ReportFile(id, "summary.md")
	}
	return artifacts.ReportFile(id, string(f))
}

// The session keeps its report twice: as it is, for --no-redact, and as it is
// shown. What was secret when the session ended stays so for whoever asks later,
// in whose environment the secrets are not.
func (s *Session) rawReportPath() string   { return filepath.Join(s.Folder, "report.json") }
func (s *Session) shownReportPath() string { return filepath.Join(s.Folder, "report.shown.json") }

// report writes the session's report; failed is what superqode could not do.
func (s *Session) report(ctx context.Context, c *collected, res *artifacts.Result, failed error) error {
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	list, err := s.findings().List()
	if err != nil {
		return err
	}
	_, warnings := s.findings().Suppressions()
	in := artifacts.ReportInput{
		Result: *res, Command: s.Rec.Command, Findings: findings.WithPatches(list, c.artifacts), Artifacts: c.artifacts,
		Warnings: slices.Concat(s.Rec.Warnings, warnings), Setup: s.setupReport(),
	}
	if !s.Rec.Agent.IsZero() {
		in.Agents = []string{s.Rec.Agent.String()}
	}
	for _, a := range s.Rec.Agents {
		in.Agents = append(in.Agents, a.Agent.String())
	}
	if s.Rec.Runs > 0 && s.Rec.ExitCode == nil {
		in.Errors = append(in.Errors, "how the program ended is not known: superqode could not run it, or died before it")
	}
	for _, err := range []error{s.setupError, failed} {
		if err != nil {
			in.Errors = append(in.Errors, err.Error())
		}
	}
	if in.Commands, err = s.commandRuns(); err != nil {
		return err
	}
	if err := s.keepWorkspaceInfo(ctx, c, res); err != nil {
		return err
	}
	in.Artifacts = c.artifacts
	rep := artifacts.NewReport(in)
	res.Found = rep.Summary
	written, err := s.writeReport(ctx, store, rep, maskedReport(rep, s.redactor()))
	c.artifacts = append(c.artifacts, written...)
	res.Artifacts = artifacts.Refs(c.artifacts)
	failpoint.Hit("end.reported")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// writeReport keeps the report in the session's folder, as it is and as it is
// shown, and files what is shown in every format that is wanted.
func (s *Session) writeReport(ctx context.Context, store *artifacts.Store, raw, shown artifacts.Report) ([]artifacts.Artifact, error) {
	for path, rep := range map[string]artifacts.Report{s.rawReportPath(): raw, s.shownReportPath(): shown} {
		data, err := rep.JSON()
		if err != nil {
			return nil, err
		}
		if err := errors.Join(atomicfile.ClearWay(path), atomicfile.Write(path, data, 0o600)); err != nil {
			return nil, err
		}
	}
	formats := []ReportFormat{FormatJSON, FormatMD, FormatHTML}
	for _, f := range s.Rec.Reports {
		if f := ReportFormat(f); !slices.Contains(formats, f) {
			formats = append(formats, f)
		}
	}
	var list []artifacts.New
	for _, f := range formats {
		var b bytes.Buffer
		if err := s.render(ctx, &b, rendering{store: store, rep: shown, format: f, noRedact: s.Rec.NoRedact, quick: true}); err != nil {
			return nil, fmt.Errorf("as %s: %w", f, err)
		}
		list = append(list, artifacts.New{
			Type: artifacts.TypeQR, Path: f.file(s.Rec.ID), Description: "quality report", Session: s.Rec.ID, Data: b.Bytes(),
			Metadata: s.reportMetadata(shown.Verdict),
		})
	}
	return store.AddAll(ctx, list)
}

// rendering is one report in one format.
type rendering struct {
	store    *artifacts.Store
	rep      artifacts.Report // as it is to be shown
	format   ReportFormat
	noRedact bool   // leave secrets in the lines of the patch
	quick    bool   // every end of a session does it: it must not take long
	root     string // the address of qe-artifacts for an HTML page that does not stand in qr/
}

// render writes a report. The page shows the patch too, which holds what the
// session's programs wrote.
func (s *Session) render(ctx context.Context, w io.Writer, r rendering) error {
	opt := report.HTMLOptions{Quick: r.quick, Root: r.root}
	if !r.noRedact {
		opt.Mask = s.redactor().Text
		if err := s.shownPatch(&opt); err != nil {
			return err
		}
	}
	switch r.format {
	case FormatJSON:
		data, err := r.rep.JSON()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	case FormatMD:
		_, err := io.WriteString(w, r.rep.Markdown())
		return err
	case FormatHTML:
		data, err := page(ctx, r.store, r.rep, opt)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	case FormatSARIF:
		return report.SARIF(w, r.rep)
	case FormatJUnit:
		return report.JUnit(w, r.rep)
	case FormatSummary:
		return report.StepSummary(w, r.rep)
	}
	return superqode.Errorf(superqode.ErrUsage, "%q is not a report format", r.format)
}

// readReport reads one of the session's two reports, or, where an older superqode
// ended the session, the one that was filed. The error wraps ErrNotFound when
// there is none.
func (s *Session) readReport(path string) (rep artifacts.Report, err error) {
	data, err := atomicfile.Read(path)
	if err == nil {
		if err = json.Unmarshal(data, &rep); err == nil && rep.SessionID == s.Rec.ID {
			return rep, nil
		}
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return rep, err
	}
	if data, err = s.filed(store, FormatJSON); err != nil {
		return rep, err
	}
	return artifacts.ParseReport(data)
}

// filed reads the session's report as it was filed in a format.
func (s *Session) filed(store *artifacts.Store, format ReportFormat) ([]byte, error) {
	list, err := store.List(context.Background(), artifacts.Filter{Session: s.Rec.ID, Type: artifacts.TypeQR})
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Path.String() != format.file(s.Rec.ID) {
			continue
		}
		return store.Read(a, 0)
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has no report yet", s.Rec.ID), "superqode workspace end --session %s", s.Rec.ID)
}

// reportAgain changes the report of a session that has ended, goes by the
// suppressions of now, and files it anew. The caller holds findings.lock, or
// changes nothing.
func (s *Session) reportAgain(ctx context.Context, change func(artifacts.Report) artifacts.Report) error {
	raw, err := s.readReport(s.rawReportPath())
	if err != nil {
		return err
	}
	shown, err := s.readReport(s.shownReportPath())
	if err != nil {
		return err
	}
	entries, warnings := s.findings().Suppressions()
	for _, w := range warnings {
		s.Tell(w)
	}
	for _, rep := range []*artifacts.Report{&raw, &shown} {
		*rep = change(*rep)
		*rep = rep.WithFindings(entries.Mark(rep.AllFindings(), s.Now()))
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	if _, err := s.writeReport(ctx, store, raw, maskedReport(shown, s.redactor())); err != nil {
		return fmt.Errorf("write the report anew: %w", err)
	}
	return nil
}

// ReportOptions says which form of a report is wanted.
type ReportOptions struct {
	Format   ReportFormat
	NoRedact bool // show secrets, as far as the session's folder still has them
}

// Report writes the report of a session that has ended, also when cleanup took its
// record since.
func (m *Manager) Report(ctx context.Context, dir, ref string, opt ReportOptions, w io.Writer) error {
	s, err := m.lookAt(ctx, dir, ref)
	if err != nil {
		return err
	}
	path, open := s.shownReportPath(), opt.NoRedact || s.Rec.NoRedact
	if opt.NoRedact {
		path = s.rawReportPath()
	}
	rep, err := s.readReport(path)
	if err != nil {
		return err
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	if s.reportOnly && opt.Format == FormatHTML { // what masked the patch is not known any more
		data, err := s.filed(store, FormatHTML)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	root := (&url.URL{Scheme: "file", Path: filepath.Join(string(s.Rec.Origin), ".superqode", "qe-artifacts")}).String() // nobody knows where the page will stand
	return s.render(ctx, w, rendering{store: store, rep: rep, format: opt.Format, noRedact: open, root: root})
}

// AppendStepSummary appends the report's summary to the file that a workflow's
// step named in GITHUB_STEP_SUMMARY. It does nothing outside a workflow.
func (m *Manager) AppendStepSummary(ctx context.Context, dir, ref string) (err error) {
	path := superqode.Getenv(m.Env, "GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := m.Report(ctx, dir, ref, ReportOptions{Format: FormatSummary}, &b); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}
