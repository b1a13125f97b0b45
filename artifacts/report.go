package artifacts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
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
	FilesAnalyzed    *int // nil: not measured
	TotalLines       *int // nil: not measured
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
	for _, v := range []struct {
		n    int
		name Severity
	}{{c.Critical, SeverityCritical}, {c.High, SeverityHigh}, {c.Medium, SeverityMedium}, {c.Low, SeverityLow}, {c.Info, SeverityInfo}} {
		if v.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", v.n, v.name))
		}
	}
	return strings.Join(parts, ", ")
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
