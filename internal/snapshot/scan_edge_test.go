package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// A file that is written all the time is named and keeps an entry without an id.
func TestScanNamesAFileThatKeepsChanging(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"calm": "1"})
	f, err := os.Create(filepath.Join(dir, "log"))
	snaptest.Must(t, err)
	snaptest.Must(t, f.Truncate(128<<20))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for size := int64(128 << 20); ; size++ {
			select {
			case <-stop:
				return
			default:
				_ = f.Truncate(size)
			}
		}
	}()
	s, problems, err := snapshot.Scan(t.Context(), dir, snapshot.ScanOptions{Format: snapshot.SHA1})
	close(stop)
	<-done
	snaptest.Must(t, errors.Join(err, f.Close()))
	if len(problems) != 1 || problems[0].Path != "log" || !errors.Is(problems[0], snapshot.ErrChangedWhileRead) {
		t.Fatalf("problems %v", problems)
	}
	if e := s.Find("log"); e == nil || e.Kind != snapshot.File || !e.ID.IsZero() {
		t.Errorf("log is %+v", e)
	}
	if s.Find("calm").ID.IsZero() {
		t.Error("the file beside it was not read")
	}
}

// What is no regular file any more when it is to be read is not waited for.
func TestHashMissingOpensNoFIFO(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"fifo": "1", "link": "1", "gone": "1", "dir": "1", "file": "1"})
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{Contents: snapshot.StatOnly})
	for _, name := range []string{"fifo", "link", "gone", "dir"} {
		snaptest.Must(t, os.Remove(filepath.Join(dir, name)))
	}
	snaptest.Must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	snaptest.Must(t, os.Symlink("file", filepath.Join(dir, "link")))
	snaptest.Must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	snaptest.Write(t, dir, "file", "longer than before", 0o644)
	problems, err := snapshot.HashMissing(t.Context(), s)
	snaptest.Must(t, err)
	var names []string
	for _, p := range problems {
		names = append(names, string(p.Path))
		if want := map[bool]error{true: os.ErrNotExist, false: snapshot.ErrChangedWhileRead}[p.Path == "gone"]; !errors.Is(p, want) {
			t.Errorf("%v, want %v", p, want)
		}
	}
	if got := strings.Join(names, " "); got != "dir fifo gone link" {
		t.Errorf("problems with %s", got)
	}
	if e := s.Find("file"); e.Size != 18 || e.ID != snapshot.SHA1.HashBlob([]byte("longer than before")) {
		t.Errorf("file is %+v", e)
	}
}

func TestScanSHA256(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"big": strings.Repeat("x", 3*snapshot.ReadBuffer+1), "exact": strings.Repeat("y", snapshot.ReadBuffer), "empty": ""})
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{Format: snapshot.SHA256})
	for _, e := range s.Entries {
		data, err := os.ReadFile(e.Path.In(dir))
		snaptest.Must(t, err)
		if e.ID != snapshot.SHA256.HashBlob(data) {
			t.Errorf("%s: %v", e.Path, e.ID)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"f": "x"})
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	e := *s.Find("f")
	if _, ok := s.Known().Lookup("f", &e); ok {
		t.Fatal("a file of this moment was trusted")
	}
	snaptest.Must(t, s.Settle(t.Context()))
	if id, ok := s.Known().Lookup("f", &e); !ok || id != e.ID {
		t.Error("a settled file was not trusted")
	}
	whole := e
	whole.Stat.Ctime = s.Taken.Truncate(time.Second).UnixNano()
	if snapshot.Vouches(s, &whole) {
		t.Error("a file system with whole seconds was trusted within two of them")
	}
}
