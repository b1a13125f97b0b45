package findings

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// maxXMLDepth bounds the nesting of elements.
const maxXMLDepth = 100

// xmlDecoder reads XML without a document type: entities of its own are what
// bombs are made of, and no test report needs them.
func xmlDecoder(data []byte) *xml.Decoder {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "us-ascii", "ascii", "utf8":
			return in, nil
		case "iso-8859-1", "latin1", "iso8859-1", "windows-1252", "cp1252": // read alike, as browsers do
			return charmap.Windows1252.NewDecoder().Reader(in), nil
		}
		return nil, fmt.Errorf("its encoding %q is not read, UTF-8 is", text.Clip(charset, 40))
	}
	return dec
}

var errEntities = errors.New("refused: it declares entities")

func checkDirective(d xml.Directive) error {
	if bytes.Contains(bytes.ToUpper(d), []byte("ENTITY")) || bytes.IndexByte(d, '[') >= 0 {
		return errEntities
	}
	return nil
}

// xmlRoot returns the name of the outermost element.
func xmlRoot(data []byte) (string, error) {
	dec := xmlDecoder(data)
	for {
		t, err := dec.RawToken()
		if err != nil {
			return "", fmt.Errorf("not XML: %w", err)
		}
		switch t := t.(type) {
		case xml.Directive:
			if err := checkDirective(t); err != nil {
				return "", err
			}
		case xml.StartElement:
			return t.Name.Local, nil
		}
	}
}

// junitCase is a test case that is being read.
type junitCase struct {
	name, class, suite, file, line string
	results                        []junitResult
	output                         strings.Builder
}

type junitResult struct {
	kind, message, typ string
	body               strings.Builder
}

// junit walks the elements of a JUnit report; it holds one test case at a time.
type junit struct {
	relative func(string) (string, bool)
	suites   []string
	open     []string
	test     *junitCase
	findings []artifacts.Finding
	problems []string
}

// parseJUnit turns the failed and broken test cases of a JUnit report into
// findings of category test. relative makes the path of a file one below the
// origin's top.
func parseJUnit(data []byte, relative func(string) (string, bool)) ([]artifacts.Finding, []string) {
	j := &junit{relative: relative}
	dec := xmlDecoder(data)
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return j.findings, j.problems
		}
		if err == nil {
			err = j.token(t)
		}
		if err != nil {
			line, _ := dec.InputPos()
			j.problems = append(j.problems, fmt.Sprintf("line %d: %s; what stands before it is kept", line, plainXML(err)))
			return j.findings, j.problems
		}
	}
}

func plainXML(err error) string {
	if s, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return s.Msg
	}
	return err.Error()
}

func (j *junit) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.Directive:
		return checkDirective(t)
	case xml.StartElement:
		if j.open = append(j.open, t.Name.Local); len(j.open) > maxXMLDepth {
			return errors.New("nested too deeply")
		}
		j.start(t)
	case xml.EndElement:
		j.end(t.Name.Local)
		j.open = j.open[:len(j.open)-1]
	case xml.CharData:
		j.chars(t)
	}
	return nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (j *junit) start(e xml.StartElement) {
	switch name := e.Name.Local; name {
	case "testsuite":
		j.suites = append(j.suites, attribute(e, "name"))
	case "testcase":
		j.test = &junitCase{name: attribute(e, "name"), class: attribute(e, "classname"), file: attribute(e, "file"), line: attribute(e, "line")}
		if len(j.suites) > 0 {
			j.test.suite = j.suites[len(j.suites)-1]
		}
	case "failure", "error":
		if j.test != nil {
			j.test.results = append(j.test.results, junitResult{kind: name, message: attribute(e, "message"), typ: attribute(e, "type")})
		}
	}
}

// chars keeps what a person needs to understand a failure, and not more.
func (j *junit) chars(data []byte) {
	if j.test == nil || len(j.open) == 0 {
		return
	}
	b := &j.test.output
	switch j.open[len(j.open)-1] {
	case "failure", "error":
		if n := len(j.test.results); n > 0 {
			b = &j.test.results[n-1].body
		}
	case "system-out", "system-err":
	default:
		return
	}
	if room := maxEvidence - b.Len(); room > 0 {
		b.Write(data[:min(len(data), room)])
	}
}

func (j *junit) end(name string) {
	switch name {
	case "testsuite":
		j.suites = j.suites[:max(len(j.suites)-1, 0)]
	case "testcase":
		if j.test != nil {
			for i := range j.test.results {
				j.result(&j.test.results[i])
			}
		}
		j.test = nil
	}
}

// maxEvidence is how much output of an imported finding is kept, in bytes.
const maxEvidence = 64 << 10

// result files one failure.
func (j *junit) result(r *junitResult) {
	c := j.test
	name := c.name
	if c.class != "" && !strings.HasPrefix(name, c.class) {
		name = c.class + "." + name
	}
	what := map[string]string{"failure": "failed", "error": "broke off"}[r.kind]
	f := artifacts.Finding{
		Severity: artifacts.SeverityHigh, Priority: artifacts.SeverityHigh.DefaultPriority(), Category: "test", RuleID: text.Clip(name, 500),
		Title: text.Clip("Test "+strings.TrimSpace(name)+" "+what, 500), Description: valid(r.message), FoundBy: valid(c.suite), Tags: []string{"junit", r.kind},
		Evidence: valid(strings.TrimSpace(r.body.String())),
	}
	if f.Evidence == "" {
		f.Evidence = valid(strings.TrimSpace(c.output.String()))
	}
	if r.typ != "" && f.Description == "" {
		f.Description = valid(r.typ)
	}
	if c.file != "" {
		f.File, _ = j.relative(c.file)
	}
	if line, err := strconv.Atoi(c.line); err == nil && line > 0 && f.File != "" {
		f.Lines = &artifacts.LineRange{Start: line, End: line}
	}
	f.Title, f.RuleID = valid(f.Title), valid(f.RuleID)
	if err := f.Validate(); err != nil {
		j.problems = append(j.problems, fmt.Sprintf("test case %q: %v", text.Clip(name, 80), err))
		return
	}
	j.findings = append(j.findings, f)
}

func valid(s string) string { return strings.ToValidUTF8(text.Clip(s, maxEvidence), "\uFFFD") }
