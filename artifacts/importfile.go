package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Findings that a program leaves in its artifact folder: files in findings/ with
// JSON in the shape of superqode-qr-v1, and anywhere SARIF 2.1.0 and JUnit XML,
// told by their content.

const (
	maxImport    = 64 << 20 // bytes of one file that is read
	maxImportAll = 256 << 20
	// MaxFindings bounds the findings of one session; a report is for reading.
	MaxFindings = 10_000
	// maxImportProblems bounds what is told about one file.
	maxImportProblems = 20
)

// ImportOptions says where findings are looked for.
type ImportOptions struct {
	Staging string   // the folder that the program was given as SUPERQODE_ARTIFACT_DIR
	Roots   []string // absolute folders that stand for the origin's top: paths below them become relative
	Limit   int      // most findings; 0 means MaxFindings
}

// ImportFindings reads the findings in the files that a program left. What can not
// be used is named in the problems, with file, line and field; the rest is kept.
// The findings come in the order of their files' names, have an id and a Source.
func ImportFindings(opt ImportOptions) ([]Finding, []Problem, error) {
	staging, err := openStaging(opt.Staging)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("import findings: %w", err)
	}
	defer staging.Close() // read only: nothing is lost
	if opt.Limit == 0 {
		opt.Limit = MaxFindings
	}
	im := &importer{ImportOptions: opt, used: map[string]bool{}, left: maxImportAll}
	err = walk(staging, "", maxDepth, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && importable(rel) { // Collect names what is no file
			im.file(staging, rel, info)
		}
		return nil
	})
	return im.findings, im.problems, err
}

// importable reports whether a file may hold findings, by its name.
func importable(rel string) bool {
	folder, _, nested := strings.Cut(rel, "/")
	if nested && (folder == folderTests || folder == folderPatches || folder == stagingFixes) {
		return false
	}
	switch strings.ToLower(path.Ext(rel)) {
	case ".sarif", ".xml":
		return true
	case ".json":
		return !nested || folder == stagingFindings || strings.HasSuffix(strings.ToLower(rel), ".sarif.json")
	case ".jsonl", ".ndjson":
		return nested && folder == stagingFindings
	}
	return false
}

type importer struct {
	ImportOptions
	findings []Finding
	problems []Problem
	used     map[string]bool // ids
	left     int64
	full     bool
}

func (im *importer) problem(rel, format string, args ...any) {
	im.problems = append(im.problems, Problem{rel, fmt.Sprintf(format, args...)})
}

// file imports one file.
func (im *importer) file(staging *os.Root, rel string, info fs.FileInfo) {
	if size := info.Size(); size > maxImport || size > im.left {
		im.problem(rel, "not read for findings: its %d bytes are too many", size)
		return
	}
	f, err := openBelow(staging, rel)
	if err != nil {
		im.problem(rel, "not read for findings: %v", err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImport+1)) // it may grow meanwhile
	if err == nil && len(data) > maxImport {
		err = errors.New("it grew meanwhile")
	}
	if err != nil {
		im.problem(rel, "not read for findings: %v", err)
		return
	}
	im.left -= int64(len(data))
	im.content(rel, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
}

// content tells what a file holds and reads it.
func (im *importer) content(rel string, data []byte) {
	trimmed := bytes.TrimSpace(data)
	inFindings := strings.HasPrefix(rel, stagingFindings+"/")
	var list []Finding
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
		list, problems = parseFindings(data, im.Roots)
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
func (im *importer) add(rel string, f Finding) {
	if len(im.findings) >= im.Limit {
		if !im.full {
			im.problem(rel, "more than %d findings; the rest is left out", im.Limit)
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
	im.used[f.ID] = true
	im.findings = append(im.findings, f)
}

// relative turns a tool's path into one below the origin's top, or returns false
// for what lies elsewhere.
func (im *importer) relative(name string) (string, bool) {
	name = strings.ReplaceAll(name, "\\", "/")
	name = path.Clean(belowRoots(name, im.Roots))
	if _, err := superqode.ParseRelPath(name); err != nil {
		return "", false
	}
	return name, true
}
