package artifacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-2d964004/superqode/internal/text"
)

// parseFindings reads findings from JSON: one object, an array of them, objects
// one after the other, or a report with "findings". The problems name line and
// field.
func parseFindings(data []byte, roots []string) (list []Finding, problems []string) {
	p := &jsonFindings{data: data, roots: roots}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.byLine(int(dec.InputOffset()), err)
			break
		}
		p.value(raw, int(dec.InputOffset())-len(raw))
	}
	return p.list, p.problems
}

type jsonFindings struct {
	data     []byte
	roots    []string // see ParseFinding
	list     []Finding
	problems []string
	last     int // the line of the last byte counted
	counted  int // so many bytes of data were counted
}

// byLine goes on behind something that is no JSON: from the next line on each line
// is taken for itself, so that the time does not grow with the square of the size.
func (p *jsonFindings) byLine(at int, err error) {
	for at < len(p.data) && strings.IndexByte(" \t\r\n,", p.data[at]) >= 0 {
		at++
	}
	p.problem(at, err)
	for {
		i := bytes.IndexByte(p.data[min(at, len(p.data)):], '\n')
		if i < 0 {
			return
		}
		at += i + 1
		line, _, _ := bytes.Cut(p.data[at:], []byte("\n"))
		text := bytes.TrimSpace(line)
		var v json.RawMessage
		switch err := json.Unmarshal(text, &v); {
		case len(text) == 0:
		case err != nil:
			p.problem(at, err)
		default:
			p.value(text, at)
		}
	}
}

// lineAt returns the line of a byte, from 1. Offsets come in rising order.
func (p *jsonFindings) lineAt(at int) int {
	at = min(at, len(p.data))
	if at < p.counted {
		p.counted, p.last = 0, 0
	}
	p.last += bytes.Count(p.data[p.counted:at], []byte("\n"))
	p.counted = at
	return p.last + 1
}

func (p *jsonFindings) problem(at int, err error) {
	if len(p.problems) > 1000*maxImportProblems { // no more than some are told
		return
	}
	p.problems = append(p.problems, fmt.Sprintf("line %d: %v", p.lineAt(at), err))
}

// value takes one JSON value apart.
func (p *jsonFindings) value(raw json.RawMessage, at int) {
	switch raw[0] {
	case '[':
		p.array(raw, at)
	case '{':
		var report struct {
			Findings json.RawMessage `json:"findings"`
			Severity json.RawMessage `json:"severity"`
		}
		if json.Unmarshal(raw, &report) == nil && report.Severity == nil && len(report.Findings) > 0 && report.Findings[0] == '[' {
			p.array(report.Findings, at+max(bytes.Index(raw, report.Findings), 0))
			return
		}
		p.finding(raw, at)
	default:
		p.problem(at, errors.New("not a finding: neither an object nor a list"))
	}
}

func (p *jsonFindings) array(raw json.RawMessage, at int) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		p.problem(at, err)
		return
	}
	for dec.More() {
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			p.problem(at, err)
			return
		}
		begin := at + int(dec.InputOffset()) - len(one)
		if one[0] != '{' {
			p.problem(begin, errors.New("not a finding: not an object"))
			continue
		}
		p.finding(one, begin)
	}
}

func (p *jsonFindings) finding(raw json.RawMessage, at int) {
	f, err := ParseFinding(raw, p.roots...)
	if err != nil {
		p.problem(at, err)
		return
	}
	f.Suppressed = nil // the finder has no say in what counts
	if len(f.Ignored) > 0 {
		p.problem(at, fmt.Errorf("unknown fields are left out: %s", text.Clip(strings.Join(f.Ignored, ", "), 200)))
	}
	p.list = append(p.list, f)
}
