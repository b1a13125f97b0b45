package life

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Suppressions returns the file of suppressions of the origin around dir, which
// need not exist.
func (m *Manager) Suppressions(ctx context.Context, dir string) (findings.File, error) {
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return findings.File{}, err
	}
	return findings.File{Origin: o.Top, Locks: m.ProjectOf(o).Dir, Now: m.Now()}, nil
}

// writeReport writes the session's report; failed is what superqode could not do.
func (e *ending) writeReport(ctx context.Context, failed error) error {
	book := e.Findings()
	list, err := book.Log.List()
	if err != nil {
		return err
	}
	_, warnings := book.Suppressions()
	in := artifacts.ReportInput{
		Result: *e.res, Command: e.Rec.Command, Findings: findings.WithPatches(list, e.artifacts), Artifacts: e.artifacts,
		Warnings: slices.Concat(e.Rec.Warnings, warnings), Setup: e.SetupReport(), Version: e.Version, Agents: e.Rec.AgentNames(),
	}
	if e.Rec.Runs > 0 && e.Rec.ExitCode == nil {
		in.Errors = append(in.Errors, "how the program ended is not known: superqode could not run it, or died before it")
	}
	for _, err := range []error{e.opt.unset, failed} {
		if err != nil {
			in.Errors = append(in.Errors, err.Error())
		}
	}
	if in.Commands, err = e.CommandRuns(); err != nil {
		return err
	}
	described, err := e.KeepWorkspaceInfo(ctx, e.res)
	if err != nil {
		return err
	}
	e.artifacts = append(e.artifacts, described...)
	in.Artifacts, e.res.Setup, e.res.Included = e.artifacts, e.SetupMasked(), e.Rec.Included
	rep := artifacts.NewReport(in)
	e.res.Found = rep.Summary
	written, err := book.Reports().Write(ctx, rep)
	e.artifacts = append(e.artifacts, written...)
	e.res.Artifacts = artifacts.Refs(e.artifacts)
	failpoint.Hit("end.reported")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Report writes the report of a session that has ended, also when cleanup took its
// record since.
func (m *Manager) Report(ctx context.Context, dir, ref string, opt report.ShowOptions, w io.Writer) error {
	s, err := m.lookAt(ctx, dir, ref)
	if err != nil {
		return err
	}
	opt.Filed = s.ReportOnly
	return s.Findings().Reports().Show(ctx, w, opt)
}

// AppendStepSummary appends the report's summary to the file that a workflow's
// step named in GITHUB_STEP_SUMMARY. It does nothing outside a workflow.
func (m *Manager) AppendStepSummary(ctx context.Context, dir, ref string) (err error) {
	path := superqode.Getenv(m.Env, "GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := m.Report(ctx, dir, ref, report.ShowOptions{Format: report.FormatSummary}, &b); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// A session's report outlives the session's own folder, which cleanup takes: it
// lies among the origin's artifacts until artifacts prune takes it from there.
// Such a session can be looked at, and no more.

// AttachReported returns a session whose report lies among the artifacts of the
// origin around dir, whether its own folder is still there or not: Record knows
// its id, and Findings what it found. ref is its id, a unique beginning or end of
// it, or its name; "" is the session that began last. The error wraps
// superqode.ErrNotFound when there is none.
func (m *Manager) AttachReported(ctx context.Context, dir, ref string) (*Session, error) {
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return nil, err
	}
	store, err := artifacts.Open(o.Top)
	if err != nil {
		return nil, err
	}
	hit, name, err := report.Find(ctx, store, ref)
	if err != nil {
		return nil, err
	}
	s := m.of(&site.Site{Host: m.Host, Project: m.ProjectOf(o), Source: o})
	s.ReportOnly = true
	s.Folder = s.Project.SessionPath(hit.Session.String())
	s.Rec = state.Record{ID: hit.Session, State: superqode.StateDone, Origin: state.HostPath(o.Top), CreatedAt: hit.CreatedAt}
	s.Rec.Name = name
	return s, nil
}

// lookAt returns a session to read its report from: one that superqode has the
// record of or, where cleanup took that, what its report tells.
func (m *Manager) lookAt(ctx context.Context, dir, ref string) (*Session, error) {
	l, err := m.find(ctx, dir, ref)
	if err == nil {
		return m.session(l), nil
	}
	if ref == "" || !errors.Is(err, superqode.ErrNotFound) {
		return nil, err
	}
	s, rerr := m.AttachReported(ctx, dir, ref)
	if errors.Is(rerr, superqode.ErrNotFound) || rerr != nil && !errors.Is(rerr, superqode.ErrUsage) {
		return nil, err
	}
	return s, rerr
}
