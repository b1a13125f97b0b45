package artifacts

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
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

// Suppressed says why a finding does not count.
type Suppressed struct {
	Reason string `json:"reason"`
	By     string `json:"by"` // the origin's file of suppressions, or the tool that reported the finding as suppressed
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

// MaxTags bounds the tags of one finding.
const MaxTags = 100

// CheckFindingID returns a *FieldError for what cannot be a finding's id.
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
	for field, v := range map[string]string{
		"title": f.Title, "category": f.Category, "description": f.Description, "evidence": f.Evidence, "rule_id": f.RuleID,
		"suggested_fix": f.SuggestedFix, "patch_id": f.PatchID, "found_by": f.FoundBy, "tags": strings.Join(f.Tags, ""),
	} {
		if len(v) > maxText {
			return fieldErrorf(field, "%s, more than %s", text.Size(int64(len(v))), text.Size(maxText))
		}
	}
	if len(f.Tags) > MaxTags {
		return fieldErrorf("tags", "%d of them, more than %d", len(f.Tags), MaxTags)
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
		ID: f.ID, Severity: f.Severity, Priority: f.Priority, Confidence: f.Confidence, Category: f.Category,
		Title: f.Title, Description: f.Description, Lines: f.Lines, Evidence: f.Evidence, SuggestedFix: f.SuggestedFix,
		Location: strings.ToValidUTF8(f.Location(), string(utf8.RuneError)), PatchID: f.PatchID, FoundBy: f.FoundBy,
		Tags: notNull(f.Tags), RuleID: f.RuleID, Fingerprint: f.Fingerprint(), Suppressed: f.Suppressed,
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

// ParseFinding reads one finding, a JSON object with the fields of
// superqode-qr-v1. Only severity and title are required; severity is accepted in
// any case, a missing priority follows from it, and location stands in for
// file_path and line_range where those are missing. Fields that are not known are
// named in Ignored. An error is a *FieldError that names the field, or says that
// this is no JSON object. roots are absolute folders that stand for the origin's
// top: a file below one of them is taken relative to it.
func ParseFinding(data []byte, roots ...string) (Finding, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return Finding{}, err
	}
	if raw == nil {
		return Finding{}, errors.New("null is no finding")
	}
	p := findingParser{raw: raw}
	var f Finding
	var location, fileBytes string
	p.read("id", &f.ID)
	p.read("severity", &f.Severity)
	if v, err := ParseSeverity(string(f.Severity)); err == nil {
		f.Severity = v
	}
	f.Priority = f.Severity.DefaultPriority()
	p.read("priority", &f.Priority)
	p.read("confidence_score", &f.Confidence)
	p.read("category", &f.Category)
	p.read("title", &f.Title)
	p.read("description", &f.Description)
	p.read("file_path", &f.File)
	p.read("file_path_bytes", &fileBytes)
	p.readLines(&f)
	p.read("location", &location)
	p.read("evidence", &f.Evidence)
	p.read("suggested_fix", &f.SuggestedFix)
	p.read("patch_id", &f.PatchID)
	p.read("found_by", &f.FoundBy)
	p.read("tags", &f.Tags)
	p.read("rule_id", &f.RuleID)
	p.read("source", &f.Source)
	p.read("suppressed", &f.Suppressed)
	delete(raw, "fingerprint") // it follows from the rest
	if p.err != nil {
		return Finding{}, p.err
	}
	if fileBytes != "" {
		b, err := base64.StdEncoding.DecodeString(fileBytes)
		if err != nil {
			return Finding{}, fieldErrorf("file_path_bytes", "%v", err)
		}
		f.File = string(b)
	}
	if f.File == "" && f.Lines == nil && location != "" {
		f.File, f.Lines = parseLocation(location)
	}
	f.File = TrimRoots(f.File, roots)
	f.Ignored = slices.Sorted(maps.Keys(raw))
	if err := f.Validate(); err != nil {
		return Finding{}, err
	}
	return f, nil
}

// TrimRoots returns the path below the first of some absolute folders that holds
// it, cleaned; any other path as it is.
func TrimRoots(name string, roots []string) string {
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); ok && root != "" {
			return path.Clean(rest)
		}
	}
	return name
}

// findingParser takes known fields out of raw; the first error stays.
type findingParser struct {
	raw map[string]json.RawMessage
	err error
}

// read decodes one field into v. A null is like a missing field.
func (p *findingParser) read(field string, v any) {
	raw, ok := p.raw[field]
	delete(p.raw, field)
	if !ok || string(raw) == "null" || p.err != nil {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		p.err = fieldErrorf(field, "%s", text.JSONError(err))
	}
}

// readLines reads line_range; a missing end means one line.
func (p *findingParser) readLines(f *Finding) {
	var r *struct{ Start, End *int }
	p.read("line_range", &r)
	if r == nil {
		return
	}
	if r.Start == nil {
		if p.err == nil {
			p.err = fieldErrorf("line_range", "without start")
		}
		return
	}
	f.Lines = &LineRange{*r.Start, *r.Start}
	if r.End != nil {
		f.Lines.End = *r.End
	}
}

// parseLocation reads "file", "file:7" and "file:7-9". What does not end in line
// numbers is a file's name whole.
func parseLocation(s string) (string, *LineRange) {
	m := regexp.MustCompile(`(?s)^(.+?):([0-9]{1,9})(?:-([0-9]{1,9}))?$`).FindStringSubmatch(s)
	if m == nil {
		return s, nil
	}
	start, _ := strconv.Atoi(m[2]) // at most nine digits
	end, _ := strconv.Atoi(cmp.Or(m[3], m[2]))
	return m[1], &LineRange{start, end}
}

// fingerprintLength is the number of hex digits of a fingerprint.
const fingerprintLength = 16

// Fingerprint names what was found so that it is known again in another session:
// 16 hex digits made of the rule (or the category), the file, and the title
// without letter case, numbers and spacing. The line is no part of it, since lines
// move; neither is the severity, which people change.
func (f Finding) Fingerprint() string {
	if f.fingerprint != "" {
		return f.fingerprint
	}
	kind := strings.ToLower(strings.TrimSpace(cmp.Or(f.RuleID, f.Category)))
	sum := sha256.Sum256([]byte(strings.Join([]string{"superqode-finding-1", kind, f.File, plainTitle(f.Title)}, "\x00")))
	return hex.EncodeToString(sum[:])[:fingerprintLength]
}

// plainTitle takes out of a title what differs between two reports of one thing:
// case, numbers, addresses and spacing.
func plainTitle(s string) string {
	var b strings.Builder
	number := false
	for _, r := range strings.ToLower(strings.Join(strings.Fields(s), " ")) {
		digit := unicode.IsDigit(r)
		switch {
		case digit && number:
		case digit:
			b.WriteByte('#')
		default:
			b.WriteRune(r)
		}
		number = digit
	}
	return b.String()
}

// IsFingerprint reports whether s has the form of a fingerprint.
func IsFingerprint(s string) bool {
	return len(s) == fingerprintLength && strings.Trim(s, "0123456789abcdef") == ""
}
