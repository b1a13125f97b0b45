package artifacts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
	f.File = belowRoots(f.File, roots)
	f.Ignored = slices.Sorted(maps.Keys(raw))
	if len(f.Ignored) == 0 {
		f.Ignored = nil
	}
	if err := f.Validate(); err != nil {
		return Finding{}, err
	}
	return f, nil
}

// belowRoots returns the path below the first root that holds it, cleaned; any
// other path as it is.
func belowRoots(name string, roots []string) string {
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
		p.err = fieldErrorf(field, "%s", plainTypeError(err))
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

func plainTypeError(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "is a " + t.Value + ", not a " + t.Type.String()
	}
	return err.Error()
}

// parseLocation reads "file", "file:7" and "file:7-9". What does not end in line
// numbers is a file's name whole.
func parseLocation(s string) (string, *LineRange) {
	m := regexp.MustCompile(`(?s)^(.+?):([0-9]{1,9})(?:-([0-9]{1,9}))?$`).FindStringSubmatch(s)
	if m == nil {
		return s, nil
	}
	start, _ := strconv.Atoi(m[2]) // at most nine digits
	end := start
	if m[3] != "" {
		end, _ = strconv.Atoi(m[3])
	}
	return m[1], &LineRange{start, end}
}
