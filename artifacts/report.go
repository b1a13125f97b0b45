package artifacts

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// ReportInput is everything that a report is made of.
type ReportInput struct {
	Result    Result
	Command   []string     // the program and its arguments
	Agents    []string     // who worked in the session
	Findings  []Finding    // valid; those without id get finding-001, …; those that are Suppressed do not count
	Errors    []string     // what kept superqode from doing its work: any makes the verdict blocked
	Warnings  []string     // what the reader should know besides
	Artifacts []Artifact   // the session's; where empty, Result.Artifacts alone is used
	Coverage  Coverage     // zero: not measured
	Fixes     *FixesReport // nil: none was tried
	Setup     []SetupStep
	Commands  []CommandRun
	// AllowSuggestions says that the session was asked to try fixes.
	AllowSuggestions bool
	Version          string // of superqode
}

// Report is the content of qr-*.json: the flat keys, superqode-qr-v1, and the
// session's own facts in one object (docs/formats.md). NewReport makes it.
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
	Suppressed    []Finding       `json:"suppressed_findings"` // found, looked at by a person, and not counted anywhere else
	Coverage      Coverage        `json:"coverage"`
	Artifacts     ReportArtifacts `json:"artifacts"`
	VerifiedFixes *FixesReport    `json:"verified_fixes"`
	Metadata      ReportMetadata  `json:"metadata"`

	Changes     []superqode.Change `json:"changes"`
	Guard       Guard              `json:"guard"`
	Revert      Revert             `json:"revert"`
	OriginCheck OriginCheck        `json:"origin_check"`
	Applied     *Applied           `json:"applied,omitempty"` // after OriginCheck
	Commits     *Commits           `json:"commits,omitempty"`
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
	Suppressed       int            `json:"suppressed"` // findings that do not count
}

// SeverityCounts counts findings by severity.
type SeverityCounts struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Info     int `json:"info"`
}

// Text names the counts that are not zero, worst first: "1 critical, 2 low"; ""
// when there are none.
func (c SeverityCounts) Text() string {
	var parts []string
	for _, s := range Severities() {
		if n := *c.of(s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// of returns the count of a severity that a valid finding has.
func (c *SeverityCounts) of(s Severity) *int {
	return map[Severity]*int{
		SeverityCritical: &c.Critical, SeverityHigh: &c.High, SeverityMedium: &c.Medium, SeverityLow: &c.Low, SeverityInfo: &c.Info,
	}[s]
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
	Change *float64 `json:"change"` // set by Compared when both are known
}

// Compared returns the coverage with its change, where both sides are known.
func (c Coverage) Compared() Coverage {
	if c.Before != nil && c.After != nil {
		c.Change = new(*c.After - *c.Before)
	}
	return c
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
	FilesAnalyzed     *int     `json:"files_analyzed"` // the changed files; nil: what changed is not known
	TotalLines        *int     `json:"total_lines"`    // added and removed in them
	BlockedOperations int      `json:"blocked_operations"`
	Errors            int      `json:"errors"`
	AllowSuggestions  bool     `json:"allow_suggestions"`
	Version           string   `json:"superqode_version"`
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
	Setup     []SetupStep     `json:"setup"`    // in the order in which they ran
	Commands  []CommandRun    `json:"commands"` // every program that ran in the session
	Agents    AgentRuns       `json:"agents"`   // of a session of several agents, in the order given
}

// SetupStep is one entry of the session's setup and what came of it.
type SetupStep struct {
	Name            string  `json:"name"`  // the command line, or the file's target
	Kind            string  `json:"kind"`  // input, file or run
	State           string  `json:"state"` // applied, skipped, failed or optional_failed
	Reason          string  `json:"reason"`
	StartedAt       Time    `json:"started_at"`
	DurationSeconds float64 `json:"duration_seconds"`
	ExitCode        int     `json:"exit_code"`
	Output          string  `json:"output"` // the last lines, made printable

	Input *SetupInput `json:"input,omitempty"` // of an input
}

// SetupInput says where an input came from.
type SetupInput struct {
	From     string `json:"from"` // as it was asked for
	To       string `json:"to"`
	Resolved string `json:"resolved"` // the absolute path that From stood for; "" if there was nothing
	Version  int    `json:"version"`  // of an artifact; 0 for anything else
}

// CommandRun is one program that ran in the session.
type CommandRun struct {
	Run             int               `json:"run"` // from 1
	Agent           superqode.AgentID `json:"agent_id"`
	Command         []string          `json:"command"`
	ExitCode        int               `json:"exit_code"`
	TimedOut        bool              `json:"timed_out"`
	Limit           string            `json:"limit"` // the limit that ended it: memory, pids, cpu_time, disk, or ""
	StartedAt       Time              `json:"started_at"`
	DurationSeconds float64           `json:"duration_seconds"`
	OutputBytes     int64             `json:"output_bytes"` // of both streams
	Truncated       bool              `json:"truncated"`
	Output          string            `json:"output"` // the last lines, made printable
}

// AgentRun is one agent's part of a session of several.
type AgentRun struct {
	Agent           superqode.AgentID  `json:"agent_id"`
	Command         string             `json:"command"`
	ExitCode        int                `json:"exit_code"`
	TimedOut        bool               `json:"timed_out"`
	StartedAt       Time               `json:"started_at"`
	DurationSeconds float64            `json:"duration_seconds"`
	Changes         []superqode.Change `json:"changes"`
	Patch           string             `json:"patch"`     // below qe-artifacts, "" without changes
	Log             string             `json:"log"`       // below qe-artifacts
	Conflicts       []string           `json:"conflicts"` // printable paths that could not be merged
	Workspace       Workspace          `json:"workspace"`
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
		SchemaVersion: 1, Version: "1.0", Schema: "superqode-qr-v1", SessionID: r.SessionID, Mode: r.Mode,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt, DurationSeconds: r.DurationSeconds, Coverage: in.Coverage,
		Changes: notNull(r.Changes), Guard: r.Guard.filled(), Revert: r.Revert.filled(), OriginCheck: r.OriginCheck.filled(),
		Applied: r.Applied, Commits: r.Commits, Base: r.Base, Final: r.Final, VerifiedFixes: in.Fixes.filled(),
		Run: Run{
			Command: notNull(in.Command), ExitCode: r.ExitCode, TimedOut: r.TimedOut, State: r.State, Origin: r.Origin,
			Workspace: r.Workspace, Artifacts: notNull(refs), Errors: append(errorsOf(in), invalid...),
			Warnings: notNull(in.Warnings), Setup: notNull(in.Setup), Commands: notNull(in.Commands), Agents: r.Agents.filled(),
		},
	}
	rep.Coverage = rep.Coverage.Compared()
	rep.listArtifacts(in.Artifacts)
	rep.Metadata = ReportMetadata{
		RolesUsed: notNull(in.Agents), Version: in.Version,
		BlockedOperations: len(rep.Guard.Blocked), Errors: len(rep.Run.Errors), AllowSuggestions: in.AllowSuggestions,
	}
	if !r.Final.Digest.IsZero() || len(r.Changes) > 0 {
		files, lines := len(r.Changes), 0
		for _, c := range r.Changes {
			lines += max(c.LinesAdded, 0) + max(c.LinesRemoved, 0)
		}
		rep.Metadata.FilesAnalyzed, rep.Metadata.TotalLines = &files, &lines
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
		all.Fixes = slices.DeleteFunc(slices.Clone(r.VerifiedFixes.Fixes), func(f Fix) bool {
			return f.FindingID == fix.FindingID && f.PatchID == fix.PatchID
		})
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
		*s.BySeverity.of(f.Severity)++
		*[]*int{&s.ByPriority.P0, &s.ByPriority.P1, &s.ByPriority.P2, &s.ByPriority.P3}[f.Priority]++
	}
	s.TestsGenerated, s.PatchesGenerated = len(r.Artifacts.Tests), len(r.Artifacts.Patches)
	r.FindingsCount, r.CriticalCount = s.TotalFindings, s.BySeverity.Critical
	r.WarningCount = s.BySeverity.High + s.BySeverity.Medium
	r.PatchesCount, r.TestsCount = s.PatchesGenerated, s.TestsGenerated
}

// Verdict is what a report says in one word.
type Verdict string

// The verdicts, worst first. Blocked means that the session could not be judged.
const (
	VerdictBlocked     Verdict = "blocked"
	VerdictFail        Verdict = "fail"
	VerdictConditional Verdict = "conditional"
	VerdictPass        Verdict = "pass"
)

// UnmarshalText accepts the verdicts' names only.
func (v *Verdict) UnmarshalText(b []byte) error {
	switch t := Verdict(b); t {
	case VerdictBlocked, VerdictFail, VerdictConditional, VerdictPass:
		*v = t
		return nil
	}
	return fmt.Errorf("%q is not a verdict", b)
}

// maxMedium is how many medium findings a pass may have.
const maxMedium = 3

// judge sets the verdict, by the first rule that holds, and what follows from it:
//
//	any error                          blocked
//	any critical finding               fail
//	the program failed                 fail
//	any high, or over three medium     conditional
//	no program ran                     blocked
//	otherwise                          pass
//
// The confidence is the mean of what the findings state; where none states any it
// is unknown.
func (r *Report) judge() {
	s := r.Summary.BySeverity
	switch {
	case len(r.Run.Errors) > 0:
		r.Verdict, r.Explanation = VerdictBlocked, fmt.Sprintf("The session could not be judged: %s.", r.Run.Errors[0])
	case s.Critical > 0:
		r.Verdict, r.Explanation = VerdictFail, "Findings: "+s.Text()+"."
	case r.Run.ExitCode != 0:
		r.Verdict, r.Explanation = VerdictFail, r.whatFailed()
	case s.High > 0 || s.Medium > maxMedium:
		r.Verdict, r.Explanation = VerdictConditional, "Findings: "+s.Text()+"."
	case len(r.Run.Command) == 0:
		r.Verdict, r.Explanation = VerdictBlocked, "The session could not be judged: no program ran in it."
	case len(r.Findings) == 0:
		r.Verdict = VerdictPass
		r.Explanation = "The command succeeded and nothing was found; what it did not look at was not checked."
	default:
		r.Verdict = VerdictPass
		r.Explanation = "The command succeeded; nothing bad enough to stop at was found: " + s.Text() + "."
	}
	r.Correctness = "incorrect"
	if r.Verdict == VerdictPass {
		r.Correctness = "correct"
	}
	r.Confidence = nil
	sum, n := 0.0, 0
	for _, f := range r.Findings {
		if f.Confidence != nil {
			sum += *f.Confidence
			n++
		}
	}
	if n > 0 {
		r.Confidence = new(sum / float64(n))
	}
}

// whatFailed says in one sentence which program failed.
func (r *Report) whatFailed() string {
	var bad, conflicts []string
	for _, a := range r.Run.Agents {
		conflicts = append(conflicts, a.Conflicts...)
		switch {
		case a.TimedOut:
			bad = append(bad, a.Agent.String()+" ran out of time")
		case a.ExitCode != 0:
			bad = append(bad, fmt.Sprintf("%s ended with exit code %d", a.Agent, a.ExitCode))
		}
	}
	switch {
	case len(bad)+len(conflicts) == 0:
		return fmt.Sprintf("The command ended with exit code %d.", r.Run.ExitCode)
	case len(conflicts) > 0:
		slices.Sort(conflicts)
		conflicts = slices.Compact(conflicts)
		said := text.Plural(len(conflicts), "path") + " could not be merged: "
		if len(conflicts) > 3 {
			conflicts = append(conflicts[:3], "…")
		}
		bad = append(bad, said+strings.Join(conflicts, ", "))
	}
	return fmt.Sprintf("Of %s %s.", text.Plural(len(r.Run.Agents), "agent"), strings.Join(bad, "; "))
}

//go:embed schema/*.schema.json
var schemas embed.FS

// SchemaNames lists the published JSON Schemas: "result" for what `run --json`
// prints and "qr" for qr-*.json.
func SchemaNames() []string { return []string{"result", "qr"} }

// Schema returns a published JSON Schema (draft 2020-12). The error wraps
// superqode.ErrNotFound for an unknown name.
func Schema(name string) ([]byte, error) {
	b, err := schemas.ReadFile("schema/" + name + ".schema.json")
	if err != nil {
		return nil, fmt.Errorf("%w: schema %q (one of %v)", superqode.ErrNotFound, name, SchemaNames())
	}
	return b, nil
}
