package findings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/rooted"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Findings that a program leaves in its artifact folder: files in findings/ with
// JSON in the shape of superqode-qr-v1, and anywhere SARIF 2.1.0 and JUnit XML,
// told by their content.

const (
	maxImport    = 64 << 20 // bytes of one file that is read
	maxImportAll = 256 << 20
	// maxFindings bounds the findings of one session; a report is for reading.
	maxFindings = 10_000
	// maxImportProblems bounds what is reported about one file.
	maxImportProblems = 20
)

// Import reads the findings in the files that a program left in folder. The
// problems name what cannot be used, with file, line and field; the rest is kept.
// The findings come in the order of their files' names and have an id and a
// Source. roots are absolute folders that stand for the origin's top: paths below
// them become relative.
func Import(folder string, roots ...string) ([]artifacts.Finding, []artifacts.Problem, error) {
	im := &importer{roots: roots, limit: maxFindings}
	err := im.folder(folder)
	return im.findings, im.problems, err
}

type importer struct {
	roots    []string
	limit    int // most findings
	findings []artifacts.Finding
	problems []artifacts.Problem
	used     map[string]bool // ids
	read     int64           // bytes of all files
	full     bool
}

func (im *importer) folder(dir string) error {
	root, err := rooted.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("import findings: %w", err)
	}
	defer root.Close() // read only: nothing is lost
	return rooted.Walk(root, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && importable(rel) { // staging.Collect names what is no file
			im.file(root, rel, info.Size())
		}
		return nil
	})
}

// importable reports whether a file may hold findings, by its name.
func importable(rel string) bool {
	folder, _, nested := strings.Cut(rel, "/")
	if nested && (folder == "generated-tests" || folder == "patches" || folder == "fixes") {
		return false
	}
	switch strings.ToLower(path.Ext(rel)) {
	case ".sarif", ".xml":
		return true
	case ".json":
		return !nested || folder == "findings" || strings.HasSuffix(strings.ToLower(rel), ".sarif.json")
	case ".jsonl", ".ndjson":
		return nested && folder == "findings"
	}
	return false
}

func (im *importer) problem(rel, format string, args ...any) {
	im.problems = append(im.problems, artifacts.Problem{Path: rel, Reason: fmt.Sprintf(format, args...)})
}

// file imports one file.
func (im *importer) file(root *os.Root, rel string, size int64) {
	if size > maxImport || size > maxImportAll-im.read {
		im.problem(rel, "not read for findings: %s are too much", text.Size(size))
		return
	}
	data, err := rooted.Read(root, rel, maxImport)
	if _, grew := errors.AsType[*rooted.TooLargeError](err); grew {
		err = errors.New("it grew meanwhile")
	}
	if err != nil {
		im.problem(rel, "not read for findings: %v", err)
		return
	}
	im.read += int64(len(data))
	im.content(rel, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
}

// content tells what a file holds and reads it.
func (im *importer) content(rel string, data []byte) {
	trimmed := bytes.TrimSpace(data)
	inFindings := strings.HasPrefix(rel, "findings/")
	var list []artifacts.Finding
	var problems []string
	switch {
	case len(trimmed) == 0:
	case trimmed[0] == '<':
		root, err := xmlRoot(trimmed)
		if err != nil && (inFindings || errors.Is(err, errEntities)) {
			problems = []string{err.Error()}
		}
		if err != nil || root != "testsuite" && root != "testsuites" {
			break // another XML file: coverage, say
		}
		list, problems = parseJUnit(trimmed, im.relative)
	case isSARIF(trimmed):
		list, problems = parseSARIF(trimmed, im.relative)
	case inFindings:
		list, problems = parseFindings(data, im.roots)
	}
	for i, p := range problems {
		if i == maxImportProblems {
			im.problem(rel, "and %d more", len(problems)-i)
			break
		}
		im.problem(rel, "%s", p)
	}
	for _, f := range list {
		im.add(rel, f)
	}
}

// add enters one finding and gives it an id of its own.
func (im *importer) add(rel string, f artifacts.Finding) {
	if len(im.findings) >= im.limit {
		if !im.full {
			im.problem(rel, "more than %d findings; the rest is left out", im.limit)
		}
		im.full = true
		return
	}
	f.Source = rel
	if im.used[f.ID] {
		im.problem(rel, "id: %q is used twice; the second finding got another", f.ID)
		f.ID = ""
	}
	for n := len(im.findings) + 1; f.ID == "" || im.used[f.ID]; n++ {
		f.ID = fmt.Sprintf("imported-%03d", n)
	}
	if im.used == nil {
		im.used = map[string]bool{}
	}
	im.used[f.ID] = true
	im.findings = append(im.findings, f)
}

// relative turns a tool's path into one below the origin's top, or returns false
// for what lies elsewhere.
func (im *importer) relative(name string) (string, bool) {
	name = strings.ReplaceAll(name, "\\", "/")
	name = path.Clean(artifacts.TrimRoots(name, im.roots))
	if _, err := superqode.ParseRelPath(name); err != nil {
		return "", false
	}
	return name, true
}

// parseFindings reads findings from JSON: one object, an array of them, objects
// one after the other, or a report with "findings". The problems name line and
// field.
func parseFindings(data []byte, roots []string) (list []artifacts.Finding, problems []string) {
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
	roots    []string // see artifacts.ParseFinding
	list     []artifacts.Finding
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
	if len(p.problems) > 1000*maxImportProblems { // only some are reported
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
		isReport := json.Unmarshal(raw, &report) == nil && report.Severity == nil
		if isReport && len(report.Findings) > 0 && report.Findings[0] == '[' {
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
	f, err := artifacts.ParseFinding(raw, p.roots...)
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
