package artifacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseFindings reads findings from JSON: one object, an array of them, objects
// one after the other, or a report with "findings". The problems name line and
// field.
func parseFindings(data []byte) (list []Finding, problems []string) {
	p := &jsonFindings{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	for {
		var raw json.RawMessage
		err := p.dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return p.list, p.problems
		}
		if err != nil {
			if !p.skipLine(err) {
				return p.list, p.problems
			}
			continue
		}
		p.value(raw, p.offset+int(p.dec.InputOffset())-len(raw))
	}
}

type jsonFindings struct {
	data     []byte
	dec      *json.Decoder
	offset   int // of dec's input in data
	list     []Finding
	problems []string
	last     int // the line of the last byte counted
	counted  int // so many bytes of data were counted
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
	p.problems = append(p.problems, fmt.Sprintf("line %d: %v", p.lineAt(at), err))
}

// skipLine goes on behind the line that is no JSON; false means that there is no
// more.
func (p *jsonFindings) skipLine(err error) bool {
	at := p.offset + int(p.dec.InputOffset())
	for at < len(p.data) && strings.ContainsRune(" \t\r\n,", rune(p.data[at])) {
		at++
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		err = errors.New(s.Error())
	}
	p.problem(at, err)
	i := bytes.IndexByte(p.data[at:], '\n')
	if i < 0 {
		return false
	}
	p.offset = at + i + 1
	p.dec = json.NewDecoder(bytes.NewReader(p.data[p.offset:]))
	return true
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
	f, err := ParseFinding(raw)
	if err != nil {
		p.problem(at, err)
		return
	}
	f.Suppressed = nil // the finder has no say in what counts
	if len(f.Ignored) > 0 {
		p.problem(at, fmt.Errorf("unknown fields are left out: %s", clip(strings.Join(f.Ignored, ", "), 200)))
	}
	p.list = append(p.list, f)
}
