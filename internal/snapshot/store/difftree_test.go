package store

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// TestDiffTree holds that the pairs are what the patch is made of: carried out
// on the base they give the final state.
func TestDiffTree(t *testing.T) {
	t.Parallel()
	for _, c := range patchCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testDiffTree(t, c)
		})
	}
}

func testDiffTree(t *testing.T, c patchCase) {
	s := testStore(t, "", snapshot.SHA1)
	var ids [2]string
	var snaps [2]*snapshot.Snapshot
	for i, files := range []snaptest.Spec{c.base, c.final} {
		dir := t.TempDir()
		files.Write(t, dir)
		snaps[i] = rehash(t, snaptest.Walk(t, dir, true), snapshot.SHA1)
		if err := s.WriteBlobs(t.Context(), dir, snaps[i].Entries); err != nil {
			t.Fatal(err)
		}
		var err error
		if ids[i], err = s.Commit(t.Context(), "refs/superqode/qe-1/x", snaps[i], CommitOptions{Message: "x", When: time.Unix(1e9, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	opt := DiffOptions{Base: ids[0], Final: ids[1]}
	pairs, err := s.DiffTree(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := s.OpenReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view, files := gitView(snaps[0]), 0
	for _, p := range pairs {
		files++
		if p.Old != nil {
			delete(view, p.Old.Path)
			checkEntry(t, p.Old, snaps[0].Find(p.Old.Path))
		}
		if p.Old != nil && p.New != nil && p.Old.Kind != p.New.Kind {
			files++ // the patch tells of it as of two
		}
	}
	for _, p := range pairs {
		if p.New == nil {
			continue
		}
		view[p.New.Path] = gitMode(p.New) + " " + p.New.ID.String()
		checkEntry(t, p.New, snaps[1].Find(p.New.Path))
		var got bytes.Buffer
		if err := blobs.Copy(p.New.ID, &got); err != nil || int64(got.Len()) != p.New.Size {
			t.Errorf("%q: read %d bytes, %v", p.New.Path, got.Len(), err)
		}
	}
	sameView(t, gitView(snaps[1]), view)
	var patch bytes.Buffer
	if err := s.Diff(t.Context(), opt, &patch); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(append([]byte("\n"), patch.Bytes()...), []byte("\ndiff --git ")); n != files {
		t.Errorf("the patch has %d files, the pairs say %d", n, files)
	}
	if err := blobs.Copy(snapshot.SHA1.HashBlob([]byte("nowhere to be found")), &bytes.Buffer{}); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("contents that nobody has: %v", err)
	}
	if err := blobs.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.DiffTree(t.Context(), DiffOptions{Base: "--output=x", Final: ids[1]}); err == nil {
		t.Error("an option was taken for a revision")
	}
}

func checkEntry(t *testing.T, got, want *snapshot.Entry) {
	t.Helper()
	if want == nil || got.Kind != want.Kind || got.Size != want.Size || got.Link != want.Link || got.ID != want.ID || (got.Perm^want.Perm)&0o100 != 0 && got.Kind == snapshot.File {
		t.Errorf("entry is %+v, want %+v", got, want)
	}
}
