package artifacts

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Severity says how bad a finding is.
type Severity string

// The severities, worst first.
const (
	SeverityCritical Severity = "critical"
	SeverityHigh     Severity = "high"
	SeverityMedium   Severity = "medium"
	SeverityLow      Severity = "low"
	SeverityInfo     Severity = "info"
)

// Severities lists every severity, worst first.
func Severities() []Severity {
	return []Severity{SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow, SeverityInfo}
}

// ParseSeverity accepts a severity's name in any case.
func ParseSeverity(s string) (Severity, error) {
	for _, v := range Severities() {
		if strings.EqualFold(s, string(v)) {
			return v, nil
		}
	}
	return "", fmt.Errorf("%q is not a severity (critical, high, medium, low or info)", text.Clip(s, 80))
}

// DefaultPriority is the priority of a finding that states none: critical 0, high
// 1, medium 2, low and info 3.
func (s Severity) DefaultPriority() int {
	switch s {
	case SeverityCritical:
		return 0
	case SeverityHigh:
		return 1
	case SeverityMedium:
		return 2
	}
	return 3
}

// Finding is one thing that a session's program found, with the fields of
// superqode-qr-v1. It is made by ParseFinding, or checked with Validate.
type Finding struct {
	ID           string // letters, digits, . _ -; "" until it is filed
	Severity     Severity
	Priority     int      // 0 (first) to 3; who has none to state takes Severity.DefaultPriority
	Confidence   *float64 // 0 to 1; nil when the finder stated none
	Category     string
	Title        string
	Description  string
	File         string     // below the origin, slash-separated raw bytes; "" for none
	Lines        *LineRange // nil for the whole file
	Evidence     string
	SuggestedFix string
	PatchID      string
	FoundBy      string
	Tags         []string
	RuleID       string // of the tool that found it; "" for none
	Source       string // the file in the artifact folder that it was read from; "" for none

	// Suppressed says why the finding does not count; nil when it does.
	Suppressed *Suppressed

	fingerprint string // as a report states it, whose texts may be masked; "" where it has to be computed

	// Ignored names the fields that ParseFinding did not know.
	Ignored []string
}

// LineRange is a range of lines, 1-based and inclusive.
type LineRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Location returns "file:start-end", "file:line" is never used; without lines it
// is the file alone, without a file "".
func (f Finding) Location() string {
	if f.File == "" || f.Lines == nil {
		return f.File
	}
	return fmt.Sprintf("%s:%d-%d", f.File, f.Lines.Start, f.Lines.End)
}

// FieldError says what is wrong with one field of a finding.
type FieldError struct {
	Field  string // its name in JSON
	Reason string
}

// Error returns "field: reason".
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// maxText bounds each text of a finding, in bytes: a report is for reading.
const maxText = 1 << 20

const maxTags = 100

// CheckFindingID returns a *FieldError for what can not be a finding's id.
func CheckFindingID(id string) error {
	ok := len(id) > 0 && len(id) <= 64 && strings.IndexByte("._-", id[0]) < 0
	for i := 0; ok && i < len(id); i++ { // thousands are read at once: no pattern
		b := id[i]
		ok = b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("._-", b) >= 0
	}
	if !ok {
		return fieldErrorf("id", "%q is not an id (letters, digits, . _ -, at most 64)", text.Clip(id, 80))
	}
	return nil
}

// Validate checks every field; the error is a *FieldError that names the first
// wrong one.
func (f Finding) Validate() error {
	if f.ID != "" {
		if err := CheckFindingID(f.ID); err != nil {
			return err
		}
	}
	if _, err := ParseSeverity(string(f.Severity)); err != nil {
		if f.Severity == "" {
			return fieldErrorf("severity", "missing")
		}
		return fieldErrorf("severity", "%v", err)
	}
	if f.Priority < 0 || f.Priority > 3 {
		return fieldErrorf("priority", "%d is not between 0 and 3", f.Priority)
	}
	if c := f.Confidence; c != nil && (math.IsNaN(*c) || *c < 0 || *c > 1) {
		return fieldErrorf("confidence_score", "%v is not between 0 and 1", *c)
	}
	if strings.TrimSpace(f.Title) == "" {
		return fieldErrorf("title", "missing")
	}
	if f.File != "" {
		if _, err := superqode.ParseRelPath(f.File); err != nil {
			return fieldErrorf("file_path", "%v", err)
		}
	}
	if r := f.Lines; r != nil {
		switch {
		case f.File == "":
			return fieldErrorf("line_range", "lines of no file")
		case r.Start < 1:
			return fieldErrorf("line_range", "starts at %d; lines count from 1", r.Start)
		case r.End < r.Start:
			return fieldErrorf("line_range", "ends at %d, before it starts at %d", r.End, r.Start)
		}
	}
	for field, v := range map[string]string{"title": f.Title, "category": f.Category, "description": f.Description, "evidence": f.Evidence,
		"suggested_fix": f.SuggestedFix, "patch_id": f.PatchID, "found_by": f.FoundBy, "rule_id": f.RuleID, "tags": strings.Join(f.Tags, "")} {
		if len(v) > maxText {
			return fieldErrorf(field, "%d bytes, more than %d", len(v), maxText)
		}
	}
	if len(f.Tags) > maxTags {
		return fieldErrorf("tags", "%d of them, more than %d", len(f.Tags), maxTags)
	}
	return nil
}

type findingJSON struct {
	ID           string     `json:"id"`
	Severity     Severity   `json:"severity"`
	Priority     int        `json:"priority"`
	Confidence   *float64   `json:"confidence_score"`
	Category     string     `json:"category"`
	Title        string     `json:"title"`
	Description  string     `json:"description"`
	File         string     `json:"file_path"`
	FileBytes    string     `json:"file_path_bytes,omitempty"`
	Lines        *LineRange `json:"line_range"`
	Location     string     `json:"location"`
	Evidence     string     `json:"evidence"`
	SuggestedFix string     `json:"suggested_fix"`
	PatchID      string     `json:"patch_id"`
	FoundBy      string     `json:"found_by"`
	Tags         []string   `json:"tags"`
	RuleID       string     `json:"rule_id"`
	Source       string     `json:"source"`
	Fingerprint  string     `json:"fingerprint"`

	Suppressed *Suppressed `json:"suppressed,omitempty"`
}

// MarshalJSON writes every field of superqode-qr-v1.
func (f Finding) MarshalJSON() ([]byte, error) {
	j := findingJSON{
		ID: f.ID, Severity: f.Severity, Priority: f.Priority, Confidence: f.Confidence, Category: f.Category, Title: f.Title,
		Description: f.Description, Lines: f.Lines, Location: strings.ToValidUTF8(f.Location(), string(utf8.RuneError)),
		Evidence: f.Evidence, SuggestedFix: f.SuggestedFix, PatchID: f.PatchID, FoundBy: f.FoundBy, Tags: notNull(f.Tags),
		RuleID: f.RuleID, Fingerprint: f.Fingerprint(), Suppressed: f.Suppressed,
	}
	j.Source, _ = superqode.JSONPath(f.Source)
	j.File, j.FileBytes = superqode.JSONPath(f.File)
	return json.Marshal(j)
}

// UnmarshalJSON reads a finding of a report: what ParseFinding accepts, and the
// fingerprint that stands there.
func (f *Finding) UnmarshalJSON(b []byte) (err error) {
	var stated struct {
		Fingerprint string `json:"fingerprint"`
	}
	if *f, err = ParseFinding(b); err == nil && json.Unmarshal(b, &stated) == nil && IsFingerprint(stated.Fingerprint) {
		f.fingerprint = stated.Fingerprint
	}
	return err
}

// WithFingerprint returns the finding with its fingerprint held, so that it stays
// when texts are masked.
func (f Finding) WithFingerprint() Finding {
	f.fingerprint = f.Fingerprint()
	return f
}
