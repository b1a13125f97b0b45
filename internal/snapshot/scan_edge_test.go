package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A wide folder is looked at in ranges by several goroutines, with and without a
// previous snapshot.
func TestScanWideFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 3*walkChunk + 7
	for i := range n {
		if i%5 == 0 {
			must(t, os.MkdirAll(fmt.Sprintf("%s/w/%04d/sub", dir, i), 0o755))
		} else {
			mustWrite(t, dir, fmt.Sprintf("w/%04d", i), fmt.Sprint(i), 0o644)
		}
	}
	prev := age(t, scan(t, dir, ScanOptions{}))
	sameTree(t, testWalk(t, dir, true), prev, true)
	for i := 0; i < n; i += 3 {
		must(t, os.RemoveAll(fmt.Sprintf("%s/w/%04d", dir, i)))
		mustWrite(t, dir, fmt.Sprintf("w/%04d-new", i), "new", 0o644)
	}
	sameTree(t, testWalk(t, dir, true), scan(t, dir, ScanOptions{Previous: prev, Workers: 4}), true)
}

// More folders wait for their turn on the way down than may stay open.
func TestScanBoundsOpenFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := dir
	for range walkHandles + 60 {
		must(t, os.MkdirAll(filepath.Join(p, "a", "x"), 0o755))
		must(t, os.MkdirAll(filepath.Join(p, "b", "y"), 0o755))
		p = filepath.Join(p, "b")
	}
	sameTree(t, testWalk(t, dir, true), scan(t, dir, ScanOptions{Workers: 3}), true)
}

// A previous snapshot may lack folders, or be one of another directory.
func TestScanWithOddPrevious(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a/b/c": "1", "a/b-c": "2", "a/l": "-> b", "d": "3"}
	dir, other := tree(t, files), tree(t, files)
	want := testWalk(t, dir, true)
	prev := age(t, scan(t, dir, ScanOptions{}))
	noDirs := &Snapshot{Format: SHA1, Taken: prev.Taken, Entries: slices.DeleteFunc(slices.Clone(prev.Entries), func(e Entry) bool { return e.Kind == Dir })}
	for _, p := range []*Snapshot{noDirs, age(t, scan(t, other, ScanOptions{})), {Format: SHA1}} {
		sameTree(t, want, scan(t, dir, ScanOptions{Previous: p}), true)
	}
	if got := scan(t, dir, ScanOptions{Previous: prev, Contents: StatOnly}); got.Find("d").ID.IsZero() || got.Find("a/l").Link != "b" {
		t.Error("what the previous snapshot proves was not taken from it")
	}
}

// A file that is written all the time is named and keeps an entry without an id.
func TestScanNamesAFileThatKeepsChanging(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"calm": "1"})
	f, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	must(t, f.Truncate(64<<20))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for size := int64(64 << 20); ; size++ {
			select {
			case <-stop:
				return
			default:
				_ = f.Truncate(size)
			}
		}
	}()
	s, problems, err := Scan(t.Context(), dir, ScanOptions{Format: SHA1})
	close(stop)
	<-done
	must(t, errors.Join(err, f.Close()))
	if len(problems) != 1 || problems[0].Path != "log" || !errors.Is(problems[0], ErrChangedWhileRead) {
		t.Fatalf("problems %v", problems)
	}
	if e := s.Find("log"); e == nil || e.Kind != File || !e.ID.IsZero() {
		t.Errorf("log is %+v", e)
	}
	if s.Find("calm").ID.IsZero() {
		t.Error("the file beside it was not read")
	}
}

// What is no regular file any more when it is to be read is not waited for.
func TestHashMissingOpensNoFIFO(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"fifo": "1", "link": "1", "gone": "1", "dir": "1", "file": "1"})
	s := scan(t, dir, ScanOptions{Contents: StatOnly})
	for _, name := range []string{"fifo", "link", "gone", "dir"} {
		must(t, os.Remove(filepath.Join(dir, name)))
	}
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	mustWrite(t, dir, "file", "longer than before", 0o644)
	problems, err := HashMissing(t.Context(), s)
	must(t, err)
	var names []string
	for _, p := range problems {
		names = append(names, p.Path)
		if want := map[bool]error{true: os.ErrNotExist, false: ErrChangedWhileRead}[p.Path == "gone"]; !errors.Is(p, want) {
			t.Errorf("%v, want %v", p, want)
		}
	}
	if got := strings.Join(names, " "); got != "dir fifo gone link" {
		t.Errorf("problems with %s", got)
	}
	if e := s.Find("file"); e.Size != 18 || e.ID != SHA1.HashBlob([]byte("longer than before")) {
		t.Errorf("file is %+v", e)
	}
}

func TestScanSHA256(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"big": strings.Repeat("x", 3*readBuffer+1), "exact": strings.Repeat("y", readBuffer), "empty": ""})
	s := scan(t, dir, ScanOptions{Format: SHA256})
	for _, e := range s.Entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Path))
		must(t, err)
		if e.ID != SHA256.HashBlob(data) {
			t.Errorf("%s: %v", e.Path, e.ID)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"f": "x"})
	s := scan(t, dir, ScanOptions{})
	e := *s.Find("f")
	if _, ok := s.Known().Lookup("f", &e); ok {
		t.Fatal("a file of this moment was trusted")
	}
	must(t, s.Settle(t.Context()))
	if id, ok := s.Known().Lookup("f", &e); !ok || id != e.ID {
		t.Error("a settled file was not trusted")
	}
	whole := e
	whole.Stat.Ctime = s.Taken.Truncate(time.Second).UnixNano()
	if s.vouches(&whole) {
		t.Error("a file system with whole seconds was trusted within two of them")
	}
}
