package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// A wide folder is looked at in ranges by several goroutines, with and without a
// previous snapshot.
func TestScanWideFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 3*snapshot.WalkChunk + 7
	for i := range n {
		if i%5 == 0 {
			snaptest.Must(t, os.MkdirAll(fmt.Sprintf("%s/w/%04d/sub", dir, i), 0o755))
		} else {
			snaptest.Write(t, dir, fmt.Sprintf("w/%04d", i), fmt.Sprint(i), 0o644)
		}
	}
	prev := snaptest.Age(t, snaptest.Scan(t, dir, snapshot.ScanOptions{}))
	snaptest.Same(t, snaptest.Walk(t, dir, true), prev, true)
	for i := 0; i < n; i += 3 {
		snaptest.Must(t, os.RemoveAll(fmt.Sprintf("%s/w/%04d", dir, i)))
		snaptest.Write(t, dir, fmt.Sprintf("w/%04d-new", i), "new", 0o644)
	}
	snaptest.Same(t, snaptest.Walk(t, dir, true), snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: prev, Workers: 4}), true)
}

// More folders wait for their turn on the way down than may stay open.
func TestScanBoundsOpenFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := dir
	for range snapshot.WalkHandles + 60 {
		snaptest.Must(t, os.MkdirAll(filepath.Join(p, "a", "x"), 0o755))
		snaptest.Must(t, os.MkdirAll(filepath.Join(p, "b", "y"), 0o755))
		p = filepath.Join(p, "b")
	}
	snaptest.Same(t, snaptest.Walk(t, dir, true), snaptest.Scan(t, dir, snapshot.ScanOptions{Workers: 3}), true)
}

// A previous snapshot may lack folders, or be one of another directory.
func TestScanWithOddPrevious(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a/b/c": "1", "a/b-c": "2", "a/l": "-> b", "d": "3"}
	dir, other := snaptest.Tree(t, files), snaptest.Tree(t, files)
	want := snaptest.Walk(t, dir, true)
	prev := snaptest.Age(t, snaptest.Scan(t, dir, snapshot.ScanOptions{}))
	noDirs := &snapshot.Snapshot{Format: snapshot.SHA1, Taken: prev.Taken, Entries: slices.DeleteFunc(slices.Clone(prev.Entries), func(e snapshot.Entry) bool { return e.Kind == snapshot.Dir })}
	for _, p := range []*snapshot.Snapshot{noDirs, snaptest.Age(t, snaptest.Scan(t, other, snapshot.ScanOptions{})), {Format: snapshot.SHA1}} {
		snaptest.Same(t, want, snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: p}), true)
	}
	if got := snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: prev, Contents: snapshot.StatOnly}); got.Find("d").ID.IsZero() || got.Find("a/l").Link != "b" {
		t.Error("what the previous snapshot proves was not taken from it")
	}
}
