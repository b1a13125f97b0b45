package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

func TestScanIsSortedAndWhole(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.d/x": "3", "a-b": "2", "a0": "0", "a/y-z": "1", "a/y.d/q": "1", "a/y/": "", "a/y/k": "1"}
	dir := snaptest.Tree(t, files)
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	var got []superqode.RelPath
	for _, e := range s.Entries {
		got = append(got, e.Path)
	}
	want := []superqode.RelPath{"a", "a-b", "a.d", "a.d/x", "a/y", "a/y-z", "a/y.d", "a/y.d/q", "a/y/k", "a0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestScanRecordsOddThings(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"f": "data", "new\nline": "9", "tab\there": "10", "-dash": "11", ":(top)": "12", "\xff\xfe": "13", strings.Repeat("n", 255): "16",
		"empty": "", "emptydir/": "", "link": "-> f", "dangling": "-> /nowhere", "loop": "-> loop", "deep/" + strings.Repeat("d/", 250) + "leaf": "17",
	}
	dir := snaptest.Tree(t, files)
	snaptest.Must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	if !slices.IsSortedFunc(s.Entries, snapshot.ByPath) {
		t.Error("entries are not sorted")
	}
	for name, data := range files {
		e := s.Find(superqode.RelPath(strings.TrimSuffix(name, "/")))
		if e == nil {
			t.Errorf("%q is missing", name)
			continue
		}
		target, isLink := strings.CutPrefix(data, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			if e.Kind != snapshot.Dir {
				t.Errorf("%q has kind %d", name, e.Kind)
			}
		case isLink:
			if e.Kind != snapshot.Link || e.Link != target || e.ID != snapshot.SHA1.HashBlob([]byte(target)) {
				t.Errorf("%q is %+v", name, e)
			}
		case e.Kind != snapshot.File || e.ID != snapshot.SHA1.HashBlob([]byte(data)) || e.Size != int64(len(data)):
			t.Errorf("%q is %+v", name, e)
		}
	}
	if e := s.Find("fifo"); e == nil || e.Kind != snapshot.Other {
		t.Errorf("fifo is %+v", e)
	}
}

// A path longer than one system call takes is walked by steps.
func TestScanDeeperThanPathMax(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	snaptest.Must(t, err)
	name := strings.Repeat("x", 200)
	for range 30 {
		snaptest.Must(t, root.Mkdir(name, 0o755))
		next, err := root.OpenRoot(name)
		snaptest.Must(t, err)
		snaptest.Must(t, root.Close())
		root = next
	}
	f, err := root.Create("leaf")
	snaptest.Must(t, err)
	snaptest.Must(t, errors.Join(f.Close(), root.Close()))
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	if n := len(s.Entries); n != 31 || len(s.Entries[30].Path) != 30*201+4 || s.Entries[30].ID.IsZero() {
		t.Errorf("%d entries, the last %d bytes long", n, len(s.Entries[n-1].Path))
	}
}

func TestScanWithPreviousTellsTheSame(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	name := func() string {
		parts := []string{}
		for range 1 + rng.IntN(3) {
			parts = append(parts, string(rune('a'+rng.IntN(3)))+[]string{"", "-", ".x", "0"}[rng.IntN(4)])
		}
		return filepath.Join(dir, filepath.Join(parts...))
	}
	prev := snaptest.Age(t, snaptest.Scan(t, dir, snapshot.ScanOptions{}))
	for round := range 60 {
		for range 5 {
			p := name()
			switch rng.IntN(4) {
			case 0:
				_ = os.RemoveAll(p)
			case 1:
				_ = os.MkdirAll(p, 0o755)
			default:
				_ = os.MkdirAll(filepath.Dir(p), 0o755)
				_ = os.WriteFile(p, fmt.Appendf(nil, "%d", rng.IntN(1000)), 0o644)
			}
		}
		fresh := snaptest.Scan(t, dir, snapshot.ScanOptions{})
		reused := snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: prev})
		if want, got := sum(t, fresh), sum(t, reused); want != got {
			t.Fatalf("round %d: with Previous %s, without %s", round, got, want)
		}
		prev = reused // not aged: racily clean files must be read again
	}
}

func sum(t testing.TB, s *snapshot.Snapshot) string {
	t.Helper()
	d, err := s.Digest()
	snaptest.Must(t, err)
	return d.String()
}

// A file that is written again within one tick, with the same size, can keep all
// its stat data but the content.
func TestScanIsNotFooledByRacyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	for i := range 200 {
		snaptest.Must(t, os.WriteFile(p, []byte("aaaa"), 0o644))
		s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
		data := fmt.Appendf(nil, "%04d", i)
		snaptest.Must(t, os.WriteFile(p, data, 0o644))
		for _, opt := range []snapshot.ScanOptions{{Previous: s}, {Known: s.Known()}} {
			if got := snaptest.Scan(t, dir, opt).Find("f").ID; got != snapshot.SHA1.HashBlob(data) {
				t.Fatalf("round %d: an old content id was believed", i)
			}
		}
	}
}

// What Previous vouches for is not read: here it would lie.
func TestScanTrustsPrevious(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{"d/f": "x", "g": "y"})
	s := snaptest.Age(t, snaptest.Scan(t, dir, snapshot.ScanOptions{}))
	mark := snapshot.SHA1.HashBlob([]byte("mark"))
	s.Find("d/f").ID = mark
	if got := snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: s}).Find("d/f").ID; got != mark {
		t.Error("an unchanged file was read with Previous")
	}
	if got := snaptest.Scan(t, dir, snapshot.ScanOptions{Known: s.Known()}).Find("d/f").ID; got != mark {
		t.Error("an unchanged file was read with Known")
	}
	snaptest.Must(t, os.Chtimes(filepath.Join(dir, "d/f"), time.Now(), time.Unix(5, 0)))
	if got := snaptest.Scan(t, dir, snapshot.ScanOptions{Previous: s}).Find("d/f").ID; got == mark {
		t.Error("a touched file was not read")
	}
}

func TestScanSkipsAndStatOnly(t *testing.T) {
	t.Parallel()
	dir := snaptest.Tree(t, map[string]string{".git/x": "1", "sub/.git/y": "2", "sub/f": "3", "f": "4"})
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{Contents: snapshot.StatOnly, Skip: func(p superqode.RelPath, _ snapshot.Kind) bool { return p.Name() == ".git" }})
	if len(s.Entries) != 3 || s.Find(".git") != nil || s.Find("sub/.git") != nil {
		t.Errorf("entries %+v", s.Entries)
	}
	if slices.Sort(s.Gits); !slices.Equal(s.Gits, []superqode.RelPath{".git", "sub/.git"}) {
		t.Errorf("left out: %q", s.Gits)
	}
	if !s.Find("f").ID.IsZero() {
		t.Error("a file was read")
	}
	if _, err := s.Digest(); err == nil {
		t.Error("a digest over unknown contents")
	}
	problems, err := snapshot.HashMissing(t.Context(), s)
	if err != nil || len(problems) > 0 || s.Find("sub/f").ID != snapshot.SHA1.HashBlob([]byte("3")) {
		t.Errorf("HashMissing: %v %v %+v", problems, err, s.Find("sub/f"))
	}
}

func TestScanNamesWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	dir := snaptest.Tree(t, map[string]string{"closed/f": "1", "secret": "2", "open": "3"})
	snaptest.Must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	snaptest.Must(t, os.Chmod(filepath.Join(dir, "secret"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	s, problems, err := snapshot.Scan(t.Context(), dir, snapshot.ScanOptions{Format: snapshot.SHA1})
	if err != nil || len(problems) != 2 || problems[0].Path != "closed" || problems[1].Path != "secret" {
		t.Fatalf("problems %v, %v", problems, err)
	}
	if s.Find("secret") == nil || s.Find("open").ID.IsZero() {
		t.Error("what could be looked at is missing")
	}
}

func TestScanCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := snapshot.Scan(ctx, snaptest.Tree(t, map[string]string{"f": "1"}), snapshot.ScanOptions{Format: snapshot.SHA1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, _, err := snapshot.Scan(t.Context(), filepath.Join(t.TempDir(), "none"), snapshot.ScanOptions{Format: snapshot.SHA1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
