package findings

import (
	"bytes"
	"cmp"
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

// xmlReader reads XML without a document type: entities of its own are what bombs
// are made of, and no test report needs them.
type xmlReader struct {
	*xml.Decoder
	depth int
}

func newXMLReader(data []byte) *xmlReader {
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
	return &xmlReader{Decoder: dec}
}

var errEntities = errors.New("refused: it declares entities")

// Token is for xml.NewTokenDecoder, which pairs the elements.
func (r *xmlReader) Token() (xml.Token, error) {
	t, err := r.RawToken()
	switch t := t.(type) {
	case xml.Directive:
		if bytes.Contains(bytes.ToUpper(t), []byte("ENTITY")) || bytes.IndexByte(t, '[') >= 0 {
			return nil, errEntities
		}
	case xml.StartElement:
		if r.depth++; r.depth > maxXMLDepth {
			return nil, errors.New("nested too deeply")
		}
	case xml.EndElement:
		r.depth--
	}
	return t, err
}

// xmlRoot returns the name of the outermost element.
func xmlRoot(data []byte) (string, error) {
	for r := newXMLReader(data); ; {
		t, err := r.Token()
		if errors.Is(err, errEntities) {
			return "", err
		}
		if err != nil {
			return "", fmt.Errorf("not XML: %w", err)
		}
		if root, ok := t.(xml.StartElement); ok {
			return root.Name.Local, nil
		}
	}
}

// junitCase is a test case.
type junitCase struct {
	Name  string      `xml:"name,attr"`
	Class string      `xml:"classname,attr"`
	File  string      `xml:"file,attr"`
	Line  string      `xml:"line,attr"`
	Parts []junitPart `xml:",any"`
	suite string
}

// junitPart is a failure, an error or an output of a test case.
type junitPart struct {
	XMLName xml.Name
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// junit walks the elements of a JUnit report; it holds one test case at a time.
type junit struct {
	relative func(string) (string, bool)
	suites   []string // of each open element the suite that it is in
	findings []artifacts.Finding
	problems []string
}

// parseJUnit turns the failed and broken test cases of a JUnit report into
// findings of category test. relative makes the path of a file one below the
// origin's top.
func parseJUnit(data []byte, relative func(string) (string, bool)) ([]artifacts.Finding, []string) {
	j := &junit{relative: relative, suites: []string{""}}
	in := newXMLReader(data)
	for dec := xml.NewTokenDecoder(in); ; {
		err := j.next(dec)
		if errors.Is(err, io.EOF) {
			return j.findings, j.problems
		}
		if err != nil {
			why := err.Error()
			if s, ok := errors.AsType[*xml.SyntaxError](err); ok {
				why = s.Msg
			}
			line, _ := in.InputPos()
			j.problems = append(j.problems, fmt.Sprintf("line %d: %s; what stands before it is kept", line, why))
			return j.findings, j.problems
		}
	}
}

// next reads one token, or a whole test case.
func (j *junit) next(dec *xml.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case xml.EndElement:
		j.suites = j.suites[:len(j.suites)-1]
	case xml.StartElement:
		suite := j.suites[len(j.suites)-1]
		if t.Name.Local == "testcase" {
			c := junitCase{suite: suite}
			if err := dec.DecodeElement(&c, &t); err != nil {
				return err
			}
			j.file(c)
			return nil
		}
		if t.Name.Local == "testsuite" {
			suite = ""
			for _, a := range t.Attr {
				if a.Name.Local == "name" {
					suite = a.Value
				}
			}
		}
		j.suites = append(j.suites, suite)
	}
	return nil
}

// maxEvidence is how much output of an imported finding is kept, in bytes.
const maxEvidence = 64 << 10

// file files the failures of a test case.
func (j *junit) file(c junitCase) {
	output := ""
	for _, p := range c.Parts {
		if p.XMLName.Local == "system-out" || p.XMLName.Local == "system-err" {
			output += p.Text
		}
	}
	for _, p := range c.Parts {
		if what := map[string]string{"failure": "failed", "error": "broke off"}[p.XMLName.Local]; what != "" {
			j.failure(c, p, what, output)
		}
	}
}

func (j *junit) failure(c junitCase, p junitPart, what, output string) {
	name := c.Name
	if c.Class != "" && !strings.HasPrefix(name, c.Class) {
		name = c.Class + "." + name
	}
	f := artifacts.Finding{
		Severity: artifacts.SeverityHigh, Priority: artifacts.SeverityHigh.DefaultPriority(), Category: "test",
		RuleID: valid(text.Clip(name, 500)), Title: valid(text.Clip("Test "+strings.TrimSpace(name)+" "+what, 500)),
		Description: valid(cmp.Or(p.Message, p.Type)), FoundBy: valid(c.suite), Tags: []string{"junit", p.XMLName.Local},
		Evidence: valid(cmp.Or(strings.TrimSpace(p.Text), strings.TrimSpace(output))),
	}
	if c.File != "" {
		f.File, _ = j.relative(c.File)
	}
	if line, err := strconv.Atoi(c.Line); err == nil && line > 0 && f.File != "" {
		f.Lines = &artifacts.LineRange{Start: line, End: line}
	}
	if err := f.Validate(); err != nil {
		j.problems = append(j.problems, fmt.Sprintf("test case %q: %v", text.Clip(name, 80), err))
		return
	}
	j.findings = append(j.findings, f)
}

func valid(s string) string { return strings.ToValidUTF8(text.Clip(s, maxEvidence), "\uFFFD") }
