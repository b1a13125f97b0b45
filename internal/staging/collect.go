package staging

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/rooted"
)

// folderTests holds generated tests, one folder a kind.
const folderTests = "generated-tests"

// CollectOptions says what is collected, and for whom.
type CollectOptions struct {
	Folder  string // the folder that the program was given as SUPERQODE_ARTIFACT_DIR
	Session superqode.SessionID
	Agent   superqode.AgentID

	// Mask, where set, masks the contents of logs, summaries, traces and errors; see
	// artifacts.New.
	Mask func(io.Writer) io.WriteCloser
}

// Collect copies every regular file that a program left in its folder into the
// store: evidence/a.png to evidence/<session-id>/a.png,
// generated-tests/unit/a_test.go to generated-tests/unit/<session-id>/a_test.go,
// files elsewhere to evidence/<session-id>/. Links, FIFOs, sockets and devices are
// left out, and so is what vanishes or cannot be read; the problems name each by
// its path below the folder. The folder is not changed, and collecting it again
// adds nothing twice.
//
// The program may still be running and the folder is under its control: nothing
// in it is followed or trusted. On an error about the store itself, such as a full
// disk, what could be added is returned with the error.
func Collect(ctx context.Context, store *artifacts.Store,
	opt CollectOptions) ([]artifacts.Artifact, []artifacts.Problem, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if opt.Session.IsZero() {
		return nil, nil, errors.New("collect artifacts: no session")
	}
	root, err := rooted.Open(opt.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []artifacts.Problem{{Path: ".", Reason: "the artifact folder is gone"}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collect artifacts: %w", err)
	}
	defer root.Close() // read only: nothing is lost
	files, problems := opt.find(root)
	list := make([]artifacts.New, len(files))
	for i, f := range files {
		list[i] = f.New
	}
	added, errs, err := store.AddEach(ctx, list)
	if ctx.Err() != nil {
		return nil, problems, err
	}
	for i, f := range files {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist):
			problems = append(problems, artifacts.Problem{Path: f.rel, Reason: vanished})
		case errs[i] != nil:
			problems = append(problems, artifacts.Problem{Path: f.rel, Reason: errs[i].Error()})
		case f.torn:
			problems = append(problems, artifacts.Problem{Path: f.rel,
				Reason: "was written to while it was copied: the copy may mix old and new"})
		}
	}
	return added, problems, err
}

const vanished = "vanished while it was collected"

// file is one that is collected.
type file struct {
	artifacts.New
	rel  string
	torn bool // it was written to while it was read
}

// find lists what is to be copied. Each file is opened when its turn comes, so that
// any number of them needs few descriptors.
func (opt CollectOptions) find(root *os.Root) (files []*file, problems []artifacts.Problem) {
	described := readDescriptions(root)
	err := rooted.Walk(root, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, artifacts.Problem{Path: rel, Reason: vanished})
		case err != nil:
			problems = append(problems, artifacts.Problem{Path: rel, Reason: err.Error()})
		case !info.Mode().IsRegular():
			problems = append(problems, artifacts.Problem{Path: rel, Reason: rooted.KindOf(info.Mode()) + ", left out"})
		case isFix(rel) || rel == descriptionsFile: // see Fixes
		default:
			files = append(files, opt.file(root, rel, info.Mode().Perm(), described[rel]))
		}
		return nil
	})
	if err != nil {
		problems = append(problems, artifacts.Problem{Path: ".", Reason: err.Error()})
	}
	return files, problems
}

func (opt CollectOptions) file(root *os.Root, rel string, perm fs.FileMode, said Described) *file {
	target, meta := opt.place(root, rel)
	f := &file{rel: rel}
	f.New = artifacts.New{
		Type: artifacts.TypeAt(target), Name: path.Base(target), Path: target, Numbered: true, OriginalFile: rel,
		Session: opt.Session, Agent: opt.Agent, Metadata: meta,
		Open: func() (io.ReadCloser, error) {
			src, err := rooted.File(root, rel)
			if err != nil {
				return nil, err
			}
			return &watched{File: src, file: f}, nil
		},
	}
	if said.Type != "" {
		f.Type, f.Description = said.Type, said.Description
		f.Name, f.OriginalFile = cmp.Or(said.Name, f.Name), cmp.Or(said.Original, f.OriginalFile)
	}
	if perm&0o111 != 0 {
		meta["mode"] = fmt.Sprintf("%06o", 0o100000|perm) // copies are 0600
	}
	switch f.Type {
	case artifacts.TypeLog, artifacts.TypeSummary, artifacts.TypeTrace, artifacts.TypeError, artifacts.TypeQR:
		f.Mask = opt.Mask
	}
	return f
}

// place maps a path below the folder to one below qe-artifacts, and says what is
// known about the file.
func (opt CollectOptions) place(root *os.Root, rel string) (target string, meta map[string]any) {
	session, evidence, coverage := opt.Session.String(), artifacts.TypeTrace.Folder(), artifacts.TypeCoverage.Folder()
	meta = map[string]any{"source": "program"}
	folder, rest, nested := strings.Cut(rel, "/")
	unsorted := rel
	switch {
	case !nested:
	case folder == findingsFolder:
		return path.Join(evidence, session, rel), meta
	case folder == folderTests:
		kind, inner, nested := strings.Cut(rest, "/")
		if _, err := artifacts.ParseType("test_" + kind); err == nil && nested {
			describeTest(meta, inner)
			return path.Join(folder, kind, session, inner), meta
		}
		unsorted = rest
	case slices.Contains(artifacts.Folders(), folder):
		return path.Join(folder, session, rest), meta
	}
	if isCoverage(path.Base(rel)) {
		return path.Join(coverage, session, rel), meta
	}
	if _, ok := testFile(rel); !ok {
		return path.Join(evidence, session, rel), meta
	}
	describeTest(meta, rel)
	meta["sorted_by"] = "name and content"
	return path.Join(testKind(unsorted, readHead(root, rel)).Folder(), session, unsorted), meta
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

func readHead(root *os.Root, rel string) []byte {
	f, err := rooted.File(root, rel)
	if err != nil {
		return nil // its turn to be copied comes, and then it is named
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil || bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	return head
}

// watched is a file that notes, once it is closed, whether someone wrote to it
// while it was read.
type watched struct {
	*os.File
	file  *file
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
		w.file.torn = !end.ModTime().Equal(w.start.ModTime()) || end.Size() != w.start.Size()
	}
	return w.File.Close()
}
