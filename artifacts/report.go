package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// ReportInput is everything that a report is made of.
type ReportInput struct {
	Result    Result
	Command   []string     // the program and its arguments
	Agents    []string     // who worked in the session
	Findings  []Finding    // valid; those without id get finding-001, …
	Errors    []string     // what kept superqode from doing its work: any makes the verdict blocked
	Warnings  []string     // what the reader should know besides
	Artifacts []Artifact   // the session's; where empty, Result.Artifacts alone is used
	Coverage  Coverage     // zero: not measured
	Fixes     *FixesReport // nil: none was tried
	// AllowSuggestions says that the session was asked to try fixes.
	AllowSuggestions bool
	FilesAnalyzed    *int // nil: not measured
	TotalLines       *int // nil: not measured
}

// Report is the content of qr-*.json: the flat keys, superqode-qr-v1, and the
// session's own facts in one object (FORMATS.md section 5). NewReport makes it.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Schema        string `json:"schema"`

	SessionID     superqode.SessionID `json:"session_id"`
	Mode          superqode.Mode      `json:"mode"`
	FindingsCount int                 `json:"findings_count"`
	CriticalCount int                 `json:"critical_count"`
	WarningCount  int                 `json:"warning_count"` // findings of severity high and medium
	PatchesCount  int                 `json:"patches_count"` // artifacts of type patch and fix
	TestsCount    int                 `json:"tests_count"`   // artifacts of type test_*

	StartedAt       Time    `json:"started_at"`
	EndedAt         Time    `json:"ended_at"`
	DurationSeconds float64 `json:"duration_seconds"`

	Verdict     Verdict  `json:"verdict"`
	Correctness string   `json:"overall_correctness"` // correct (verdict pass) or incorrect
	Confidence  *float64 `json:"overall_confidence_score"`
	Explanation string   `json:"overall_explanation"`

	Summary       Summary         `json:"summary"`
	Findings      []Finding       `json:"findings"`
	Coverage      Coverage        `json:"coverage"`
	Artifacts     ReportArtifacts `json:"artifacts"`
	VerifiedFixes *FixesReport    `json:"verified_fixes"`
	Metadata      ReportMetadata  `json:"metadata"`

	Changes     []superqode.Change `json:"changes"`
	Guard       Guard              `json:"guard"`
	Revert      Revert             `json:"revert"`
	OriginCheck OriginCheck        `json:"origin_check"`
	Base        Base               `json:"base"`
	Final       Final              `json:"final"`
	Run         Run                `json:"run"`
}

// Summary counts a report's findings and what was generated.
type Summary struct {
	TotalFindings    int            `json:"total_findings"`
	BySeverity       SeverityCounts `json:"by_severity"`
	ByPriority       PriorityCounts `json:"by_priority"`
	TestsGenerated   int            `json:"tests_generated"`
	PatchesGenerated int            `json:"patches_generated"`
}

// SeverityCounts counts findings by severity.
type SeverityCounts struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Info     int `json:"info"`
}

// PriorityCounts counts findings by priority.
type PriorityCounts struct {
	P0 int `json:"P0"`
	P1 int `json:"P1"`
	P2 int `json:"P2"`
	P3 int `json:"P3"`
}

// Coverage is test coverage in percent, nil where it was not measured.
type Coverage struct {
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
	Change *float64 `json:"change"` // set by NewReport when both are known
}

// ReportArtifacts lists generated tests and patches.
type ReportArtifacts struct {
	Tests   []TestFile  `json:"tests"`
	Patches []PatchFile `json:"patches"`
}

// TestFile is a generated test.
type TestFile struct {
	Filename string `json:"filename"` // below qe-artifacts
	Type     string `json:"type"`     // unit, integration, …
	Target   string `json:"target"`   // metadata "target" of the artifact, "" when not stated
}

// PatchFile is a patch. Lines are nil where they were not counted.
type PatchFile struct {
	Filename     string `json:"filename"` // below qe-artifacts
	Target       string `json:"target"`
	LinesAdded   *int   `json:"lines_added"`
	LinesRemoved *int   `json:"lines_removed"`
}

// FixesReport says how tried fixes fared.
type FixesReport struct {
	Enabled      bool  `json:"enabled"`
	Total        int   `json:"total"`
	Verified     int   `json:"verified"`
	Improvements int   `json:"improvements"`
	Fixes        []Fix `json:"fixes"`
}

// Fix is one tried fix.
type Fix struct {
	FindingID   string `json:"finding_id"`
	PatchID     string `json:"patch_id"`
	Verified    bool   `json:"fix_verified"`
	Improvement bool   `json:"is_improvement"`
	Evidence    string `json:"evidence"`
}

// ReportMetadata holds superqode-qr-v1's counts about the session.
type ReportMetadata struct {
	RolesUsed         []string `json:"roles_used"`
	FilesAnalyzed     *int     `json:"files_analyzed"`
	TotalLines        *int     `json:"total_lines"`
	BlockedOperations int      `json:"blocked_operations"`
	Errors            int      `json:"errors"`
	AllowSuggestions  bool     `json:"allow_suggestions"`
}

// Run holds what a rendered report shows besides and no other key has.
type Run struct {
	Command   []string        `json:"command"`
	ExitCode  int             `json:"exit_code"`
	TimedOut  bool            `json:"timed_out"`
	State     superqode.State `json:"state"`
	Origin    string          `json:"origin"`
	Workspace Workspace       `json:"workspace"`
	Artifacts []Ref           `json:"artifacts"`
	Errors    []string        `json:"errors"`
	Warnings  []string        `json:"warnings"`
}

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
		DurationSeconds: r.DurationSeconds, Findings: findings, Coverage: in.Coverage, Changes: notNull(r.Changes),
		Guard: r.Guard.filled(), Revert: r.Revert.filled(), OriginCheck: r.OriginCheck.filled(), Base: r.Base, Final: r.Final,
		VerifiedFixes: in.Fixes.filled(),
		Run: Run{
			Command: notNull(in.Command), ExitCode: r.ExitCode, TimedOut: r.TimedOut, State: r.State, Origin: r.Origin,
			Workspace: r.Workspace, Artifacts: notNull(refs), Errors: append(errorsOf(in), invalid...), Warnings: notNull(in.Warnings),
		},
	}
	if c := &rep.Coverage; c.Before != nil && c.After != nil {
		c.Change = new(*c.After - *c.Before)
	}
	rep.listArtifacts(in.Artifacts)
	rep.count()
	rep.Metadata = ReportMetadata{
		RolesUsed: notNull(in.Agents), FilesAnalyzed: in.FilesAnalyzed, TotalLines: in.TotalLines, BlockedOperations: len(rep.Guard.Blocked),
		Errors: len(rep.Run.Errors), AllowSuggestions: in.AllowSuggestions,
	}
	rep.judge()
	return rep
}

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
	s := &r.Summary
	s.TotalFindings = len(r.Findings)
	for _, f := range r.Findings {
		*map[Severity]*int{SeverityCritical: &s.BySeverity.Critical, SeverityHigh: &s.BySeverity.High, SeverityMedium: &s.BySeverity.Medium,
			SeverityLow: &s.BySeverity.Low, SeverityInfo: &s.BySeverity.Info}[f.Severity]++
		*[]*int{&s.ByPriority.P0, &s.ByPriority.P1, &s.ByPriority.P2, &s.ByPriority.P3}[f.Priority]++
	}
	s.TestsGenerated, s.PatchesGenerated = len(r.Artifacts.Tests), len(r.Artifacts.Patches)
	r.FindingsCount, r.CriticalCount, r.WarningCount = s.TotalFindings, s.BySeverity.Critical, s.BySeverity.High+s.BySeverity.Medium
	r.PatchesCount, r.TestsCount = s.PatchesGenerated, s.TestsGenerated
}

// JSON returns the content of qr-*.json.
func (r Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", " ")
	return append(b, '\n'), err
}

// ParseReport reads what JSON wrote.
func ParseReport(data []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return Report{}, fmt.Errorf("read report: %w", err)
	}
	if r.Schema != "superqode-qr-v1" {
		return Report{}, fmt.Errorf("read report: schema is %q, not superqode-qr-v1", r.Schema)
	}
	return r, nil
}

// The paths below qe-artifacts that FORMATS.md section 5 gives to a session's own
// files.

// SessionPatch returns the path of a session's patch.
func SessionPatch(id superqode.SessionID) string {
	return path.Join(folderPatches, id.String()+".patch")
}

// AgentPatch returns the path of one agent's part of a session's patch.
func AgentPatch(id superqode.SessionID, agent superqode.AgentID) string {
	return path.Join(folderPatches, id.String()+"-"+agent.String()+".patch")
}

// FixPatch returns the path of the patch that fixes a finding.
func FixPatch(finding string) string { return path.Join(folderPatches, "fix-"+finding+".patch") }

// SessionLog returns the path of a session's log; kind is command, setup, guard
// or superqode.
func SessionLog(id superqode.SessionID, kind string) string {
	return path.Join(folderLogs, id.String()+"-"+kind+".log")
}

// ReportFile returns the path of a session's report; ext is json, md or html. The
// date is the one in the session's id, so that a report written again replaces
// the first.
func ReportFile(id superqode.SessionID, ext string) string {
	date, _, _ := strings.Cut(strings.TrimPrefix(id.String(), "qe-"), "-")
	return path.Join(folderQR, "qr-"+date+"-"+id.String()+"."+ext)
}

// WriteReport files the report as JSON and as Markdown. Written again for the
// same session it replaces what it wrote before.
func (s *Store) WriteReport(ctx context.Context, r Report) ([]Artifact, error) {
	if r.SessionID.IsZero() {
		return nil, fmt.Errorf("write report: no session")
	}
	data, err := r.JSON()
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	n := New{Type: TypeQR, Path: ReportFile(r.SessionID, "json"), Description: "quality report", Session: r.SessionID, Data: data,
		Metadata: map[string]any{"verdict": string(r.Verdict)}}
	md := n
	md.Path, md.Data = ReportFile(r.SessionID, "md"), []byte(r.Markdown())
	return s.AddAll(ctx, []New{n, md})
}
