package artifacts

import (
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// NewReport makes a report. It states nothing that in does not hold: coverage
// that was not measured is null, and so is the confidence of a session without
// findings that state theirs.
func NewReport(in ReportInput) Report {
	r := in.Result
	refs := r.Artifacts
	if len(in.Artifacts) > 0 {
		refs = Refs(in.Artifacts)
	}
	findings, invalid := withIDs(in.Findings)
	rep := Report{
		SchemaVersion: 1, Version: "1.0", Schema: "superqode-qr-v1", SessionID: r.SessionID, Mode: r.Mode, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		DurationSeconds: r.DurationSeconds, Coverage: in.Coverage, Changes: notNull(r.Changes),
		Guard: r.Guard.filled(), Revert: r.Revert.filled(), OriginCheck: r.OriginCheck.filled(), Applied: r.Applied, Commits: r.Commits, Base: r.Base, Final: r.Final,
		VerifiedFixes: in.Fixes.filled(),
		Run: Run{
			Command: notNull(in.Command), ExitCode: r.ExitCode, TimedOut: r.TimedOut, State: r.State, Origin: r.Origin,
			Workspace: r.Workspace, Artifacts: notNull(refs), Errors: append(errorsOf(in), invalid...), Warnings: notNull(in.Warnings),
			Setup: notNull(in.Setup), Commands: notNull(in.Commands), Agents: r.Agents.filled(),
		},
	}
	if c := &rep.Coverage; c.Before != nil && c.After != nil {
		c.Change = new(*c.After - *c.Before)
	}
	rep.listArtifacts(in.Artifacts)
	rep.Metadata = ReportMetadata{
		RolesUsed: notNull(in.Agents), FilesAnalyzed: in.FilesAnalyzed, TotalLines: in.TotalLines, BlockedOperations: len(rep.Guard.Blocked),
		Errors: len(rep.Run.Errors), AllowSuggestions: in.AllowSuggestions,
	}
	return rep.WithFindings(findings)
}

// WithFindings returns the report with these findings instead of its own: counted
// and judged anew. Those that are suppressed are kept apart.
func (r Report) WithFindings(list []Finding) Report {
	r.Findings, r.Suppressed = []Finding{}, []Finding{}
	for _, f := range list {
		if f.Suppressed != nil {
			r.Suppressed = append(r.Suppressed, f)
		} else {
			r.Findings = append(r.Findings, f)
		}
	}
	r.count()
	r.judge()
	return r
}

// WithArtifacts returns the report with more artifacts in its lists; those that
// it names already stay as they are.
func (r Report) WithArtifacts(list []Artifact) Report {
	known := map[string]bool{}
	for _, a := range r.Run.Artifacts {
		known[a.ID] = true
	}
	r.Run.Artifacts = slices.Clone(r.Run.Artifacts)
	for _, a := range list {
		if known[a.ID] {
			continue
		}
		r.Run.Artifacts = append(r.Run.Artifacts, a.Ref())
		name, _ := superqode.JSONPath(a.Path.String())
		if a.Type == TypePatch || a.Type == TypeFix {
			r.Artifacts.Patches = append(slices.Clone(r.Artifacts.Patches), PatchFile{Filename: name})
		}
	}
	r.count()
	return r
}

// WithFix returns the report with what came of a fix; an earlier try of the same
// one is replaced.
func (r Report) WithFix(fix Fix) Report {
	all := FixesReport{Enabled: true}
	if r.VerifiedFixes != nil {
		all.Fixes = slices.DeleteFunc(slices.Clone(r.VerifiedFixes.Fixes), func(f Fix) bool { return f.FindingID == fix.FindingID && f.PatchID == fix.PatchID })
	}
	all.Fixes = append(all.Fixes, fix)
	for _, f := range all.Fixes {
		all.Total++
		if f.Verified {
			all.Verified++
		}
		if f.Improvement {
			all.Improvements++
		}
	}
	r.VerifiedFixes = &all
	r.Metadata.AllowSuggestions = true
	return r
}

// AllFindings returns the findings that count and those that do not.
func (r Report) AllFindings() []Finding { return slices.Concat(r.Findings, r.Suppressed) }

// errorsOf returns the errors of the input and those that its facts are: a
// command that did not come to its end, and a revert that did not bring everything
// back.
func errorsOf(in ReportInput) []string {
	list := append([]string{}, in.Errors...)
	if in.Result.TimedOut {
		list = append(list, "the command ran out of time")
	}
	if n := len(in.Result.Revert.Differences); n > 0 {
		list = append(list, fmt.Sprintf("after the revert %d paths were not as before", n))
	}
	return list
}

func (f *FixesReport) filled() *FixesReport {
	if f == nil {
		return nil
	}
	c := *f
	c.Fixes = notNull(c.Fixes)
	return &c
}

// withIDs copies the findings, gives an id to those that have none, and turns
// invalid ones into errors of the report.
func withIDs(list []Finding) (out []Finding, invalid []string) {
	used := map[string]bool{}
	for _, f := range list {
		used[f.ID] = true
	}
	out = make([]Finding, 0, len(list))
	n := 0
	for i, f := range list {
		if err := f.Validate(); err != nil {
			invalid = append(invalid, fmt.Sprintf("finding %d is left out: %v", i+1, err))
			continue
		}
		for f.ID == "" {
			n++
			if id := fmt.Sprintf("finding-%03d", n); !used[id] {
				f.ID = id
			}
		}
		out = append(out, f)
	}
	return out, invalid
}

func (r *Report) listArtifacts(full []Artifact) {
	targets := map[string]string{}
	for _, a := range full {
		if t, ok := a.Metadata["target"].(string); ok {
			targets[a.ID] = t
		}
	}
	r.Artifacts = ReportArtifacts{Tests: []TestFile{}, Patches: []PatchFile{}}
	for _, a := range r.Run.Artifacts {
		name, _ := superqode.JSONPath(a.Path.String())
		if kind, ok := a.Type.TestKind(); ok {
			r.Artifacts.Tests = append(r.Artifacts.Tests, TestFile{Filename: name, Type: kind, Target: targets[a.ID]})
		}
		if a.Type == TypePatch || a.Type == TypeFix {
			p := PatchFile{Filename: name, Target: targets[a.ID]}
			if name == SessionPatch(r.SessionID) {
				p.LinesAdded, p.LinesRemoved = new(0), new(0)
				for _, c := range r.Changes {
					*p.LinesAdded += max(c.LinesAdded, 0)
					*p.LinesRemoved += max(c.LinesRemoved, 0)
				}
			}
			r.Artifacts.Patches = append(r.Artifacts.Patches, p)
		}
	}
}

func (r *Report) count() {
	r.Summary = Summary{TotalFindings: len(r.Findings), Suppressed: len(r.Suppressed)}
	s := &r.Summary
	for _, f := range r.Findings {
		*map[Severity]*int{SeverityCritical: &s.BySeverity.Critical, SeverityHigh: &s.BySeverity.High, SeverityMedium: &s.BySeverity.Medium,
			SeverityLow: &s.BySeverity.Low, SeverityInfo: &s.BySeverity.Info}[f.Severity]++
		*[]*int{&s.ByPriority.P0, &s.ByPriority.P1, &s.ByPriority.P2, &s.ByPriority.P3}[f.Priority]++
	}
	s.TestsGenerated, s.PatchesGenerated = len(r.Artifacts.Tests), len(r.Artifacts.Patches)
	r.FindingsCount, r.CriticalCount, r.WarningCount = s.TotalFindings, s.BySeverity.Critical, s.BySeverity.High+s.BySeverity.Medium
	r.PatchesCount, r.TestsCount = s.PatchesGenerated, s.TestsGenerated
}
