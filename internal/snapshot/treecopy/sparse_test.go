package treecopy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// What is kept aside comes back with its holes, whole, and moved files keep
// theirs.
func TestSparse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"aside", "out", "moved"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	src := filepath.Join(dir, "aside", "hole")
	f, err := os.Create(src)
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	for _, off := range []int64{0, 5 << 20, size - 3} {
		if _, err := f.WriteAt([]byte("abc"), off); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	sn, _, err := snapshot.Scan(t.Context(), filepath.Join(dir, "aside"), snapshot.ScanOptions{Format: snapshot.SHA1})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, err := Materialize(t.Context(), sn, nil, out, MaterializeOptions{Aside: filepath.Join(dir, "aside")}); err != nil {
		t.Fatal(err)
	}
	same(t, src, filepath.Join(out, "hole"))
	moved := filepath.Join(dir, "moved")
	if err := MoveOut(t.Context(), filepath.Join(dir, "aside"), moved, snapshot.SHA1, sn.Entries); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(src); !os.IsNotExist(err) {
		t.Fatalf("still there: %v", err)
	}
	same(t, filepath.Join(moved, "hole"), filepath.Join(out, "hole"))
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, errA := os.ReadFile(a)
	y, errB := os.ReadFile(b)
	if errA != nil || errB != nil || !bytes.Equal(x, y) {
		t.Fatalf("%s and %s differ: %v, %v", a, b, errA, errB)
	}
	var p, q unix.Stat_t
	if unix.Stat(a, &p) != nil || unix.Stat(b, &q) != nil {
		t.Fatal("stat")
	}
	if p.Blocks*512 < p.Size && q.Blocks*512 >= q.Size {
		t.Errorf("%s takes %d blocks and %s %d: its holes are filled", a, p.Blocks, b, q.Blocks)
	}
}
