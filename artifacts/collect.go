package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Sub-folders of the staging folder that have no namesake in the store.
const (
	stagingFindings = "findings"
	stagingFixes    = "fixes" // <finding-id>.patch
)

// StagingFolders lists the sub-folders that a program finds in
// SUPERQODE_ARTIFACT_DIR, outermost first.
func StagingFolders() []string {
	list := []string{folderQR, folderPatches, folderLogs, folderEvidence, folderCoverage, stagingFindings, stagingFixes, folderTests}
	for _, t := range Types() {
		if kind, ok := t.TestKind(); ok {
			list = append(list, path.Join(folderTests, kind))
		}
	}
	return list
}

// CollectOptions says what is to be collected, and for whom.
type CollectOptions struct {
	Staging  string // the folder that the program was given as SUPERQODE_ARTIFACT_DIR
	Session  superqode.SessionID
	Agent    superqode.AgentID
	MaxBytes int64 // files that would make the sum larger are left out and named; 0 means no limit

	// Mask, where set, masks the contents of logs, summaries, traces and errors; see
	// New.Mask.
	Mask func(io.Writer) io.WriteCloser
}

// Collect copies every regular file that a program left in its staging folder
// into the store: staging/evidence/a.png to evidence/<session-id>/a.png,
// staging/generated-tests/unit/a_test.go to
// generated-tests/unit/<session-id>/a_test.go, files elsewhere to
// evidence/<session-id>/. Links, FIFOs, sockets and devices are left out, and so
// is what vanishes or can not be read; each is named in the problems with its
// path below staging. The staging folder is not changed, and collecting it again
// adds nothing twice.
//
// The program may still be running and the folder is under its control: nothing
// in it is followed or trusted. On an error about the store itself, such as a full
// disk, what could be added is returned beside the error.
func (s *Store) Collect(ctx context.Context, opt CollectOptions) ([]Artifact, []Problem, error) {
	if opt.Session.IsZero() {
		return nil, nil, errors.New("collect artifacts: no session")
	}
	staging, err := openStaging(opt.Staging)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []Problem{{".", "the staging folder is gone"}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collect artifacts: %w", err)
	}
	defer staging.Close() // read only: nothing is lost
	items, problems := opt.find(staging)
	if len(items) == 0 {
		return nil, problems, nil
	}
	err = s.stage(ctx, items)
	if ctx.Err() != nil {
		return nil, problems, errors.Join(err, s.drop(items))
	}
	for _, it := range items {
		switch {
		case errors.Is(it.err, fs.ErrNotExist):
			problems = append(problems, Problem{it.OriginalFile, "vanished while it was collected"})
		case it.err != nil:
			problems = append(problems, Problem{it.OriginalFile, it.err.Error()})
		case it.torn:
			problems = append(problems, Problem{it.OriginalFile, "was written to while it was copied: the copy may mix old and new"})
		}
	}
	items = slices.DeleteFunc(items, func(it *item) bool { return it.tmp == "" })
	if len(items) == 0 {
		return nil, problems, err
	}
	list, cerr := s.commit(ctx, items)
	return list, problems, errors.Join(err, cerr)
}

func openStaging(dir string) (*os.Root, error) {
	parent, err := atomicfile.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return openFolder(parent, filepath.Base(dir), false)
}

// find lists what is to be copied. Only sizes are looked at here; each file is
// opened when its turn comes, so that any number of them needs few descriptors.
func (opt CollectOptions) find(staging *os.Root) (items []*item, problems []Problem) {
	left := opt.MaxBytes
	described := readDescriptions(staging)
	err := walk(staging, "", maxDepth, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, Problem{rel, "vanished while it was collected"})
			return nil
		case err != nil:
			problems = append(problems, Problem{rel, err.Error()})
			return nil
		case info.Mode().IsRegular() && (isFix(rel) || rel == DescriptionsFile): // see Fixes
			return nil
		case !info.Mode().IsRegular():
			problems = append(problems, Problem{rel, kindOf(info.Mode()) + ", left out"})
			return nil
		case opt.MaxBytes > 0 && info.Size() > left:
			problems = append(problems, Problem{rel, fmt.Sprintf("left out: its %d bytes are more than the %d left of the limit of %d", info.Size(), left, opt.MaxBytes)})
			return nil
		}
		left -= info.Size()
		it, err := opt.item(staging, rel, info, described[rel])
		if err != nil {
			problems = append(problems, Problem{rel, err.Error()})
			return nil
		}
		items = append(items, it)
		return nil
	})
	if err != nil {
		problems = append(problems, Problem{".", err.Error()})
	}
	return items, problems
}

func (opt CollectOptions) item(staging *os.Root, rel string, info fs.FileInfo, said Described) (*item, error) {
	target, meta := opt.place(staging, rel)
	p, err := superqode.ParseRelPath(target)
	if err != nil {
		return nil, err
	}
	it := &item{folder: path.Dir(target), Artifact: Artifact{
		Type: classify(target), Name: path.Base(target), Path: p, OriginalFile: rel, Session: opt.Session, Agent: opt.Agent,
		CreatedAt: now(), Metadata: meta,
	}}
	if said.Type != "" {
		it.Type, it.Description = said.Type, said.Description
		if said.Name != "" {
			it.Name = said.Name
		}
		if said.Original != "" {
			it.OriginalFile = said.Original
		}
	}
	if perm := info.Mode().Perm(); perm&0o111 != 0 {
		it.Metadata["mode"] = fmt.Sprintf("%06o", 0o100000|perm) // copies are 0600
	}
	switch it.Type {
	case TypeLog, TypeSummary, TypeTrace, TypeError, TypeQR:
		it.mask = opt.Mask
	}
	if opt.MaxBytes > 0 {
		it.limit = max(info.Size(), 1) // a file that grows meanwhile must not fill the disk
	}
	it.open = func() (io.ReadCloser, error) {
		f, err := openBelow(staging, rel)
		if err != nil {
			return nil, err
		}
		return &watched{File: f, item: it}, nil
	}
	return it, nil
}

// place maps a path below staging to one below qe-artifacts, and says what is
// known about the file.
func (opt CollectOptions) place(staging *os.Root, rel string) (target string, meta map[string]any) {
	session := opt.Session.String()
	meta = map[string]any{"source": "program"}
	folder, rest, nested := strings.Cut(rel, "/")
	unsorted := rel
	if nested {
		switch folder {
		case folderQR, folderPatches, folderLogs, folderEvidence, folderCoverage:
			return path.Join(folder, session, rest), meta
		case stagingFindings:
			return path.Join(folderEvidence, session, rel), meta
		case folderTests:
			kind, inner, nested := strings.Cut(rest, "/")
			if _, err := ParseType("test_" + kind); err == nil && nested {
				describeTest(meta, inner)
				return path.Join(folder, kind, session, inner), meta
			}
			unsorted = rest
		}
	}
	if isCoverage(path.Base(rel)) {
		return path.Join(folderCoverage, session, rel), meta
	}
	if _, ok := testFile(rel); !ok {
		return path.Join(folderEvidence, session, rel), meta
	}
	kind := testKind(unsorted, readHead(staging, rel))
	describeTest(meta, rel)
	meta["sorted_by"] = "name and content"
	return path.Join(kind.folder(), session, unsorted), meta
}

// describeTest says which language a test is in and what it is about.
func describeTest(meta map[string]any, rel string) {
	language, ok := testFile(rel)
	if !ok {
		language = sourceLanguage(path.Ext(rel))
	}
	if language != "" {
		meta["language"] = language
	}
	if target := testTarget(path.Base(rel)); target != "" {
		meta["target"] = strings.ToValidUTF8(target, "\uFFFD")
	}
}

// maxHead is how much of a test is looked at to tell its kind.
const maxHead = 64 << 10

func readHead(staging *os.Root, rel string) []byte {
	f, err := openBelow(staging, rel)
	if err != nil {
		return nil // its turn to be copied comes, and then it is named
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil || !isTextHead(head) {
		return nil
	}
	return head
}

// watched is a file that says, once it is closed, whether someone wrote to it
// while it was read.
type watched struct {
	*os.File
	item  *item
	start fs.FileInfo
}

// Read reads, and looks at the file first when it is the first time.
func (w *watched) Read(b []byte) (n int, err error) {
	if w.start == nil {
		if w.start, err = w.Stat(); err != nil {
			return 0, err
		}
	}
	return w.File.Read(b)
}

// Close closes the file after a last look at it.
func (w *watched) Close() error {
	if end, err := w.Stat(); err == nil && w.start != nil {
		w.item.torn = !end.ModTime().Equal(w.start.ModTime()) || end.Size() != w.start.Size()
	}
	return w.File.Close()
}
