package snapshot

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

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// tree makes files below a fresh directory: a name that ends in a slash is a
// folder, a value "-> x" a link to x.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		target, isLink := strings.CutPrefix(data, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(p, 0o755))
		case isLink:
			must(t, os.Symlink(target, p))
		default:
			must(t, os.WriteFile(p, []byte(data), 0o644))
		}
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func scan(t testing.TB, dir string, opt ScanOptions) *Snapshot {
	t.Helper()
	if opt.Format == 0 {
		opt.Format = SHA1
	}
	s, problems, err := Scan(context.Background(), dir, opt)
	must(t, err)
	for _, p := range problems {
		t.Fatal(p)
	}
	return s
}

// age makes all files old enough to be trusted.
func age(t testing.TB, s *Snapshot) *Snapshot {
	t.Helper()
	s.Taken = time.Now().Add(time.Hour)
	return s
}

func TestScanIsSortedAndWhole(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.d/x": "3", "a-b": "2", "a0": "0", "a/y-z": "1", "a/y.d/q": "1", "a/y/": "", "a/y/k": "1"}
	dir := tree(t, files)
	s := scan(t, dir, ScanOptions{})
	var got []string
	for _, e := range s.Entries {
		got = append(got, e.Path)
	}
	want := []string{"a", "a-b", "a.d", "a.d/x", "a/y", "a/y-z", "a/y.d", "a/y.d/q", "a/y/k", "a0"}
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
	dir := tree(t, files)
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	s := scan(t, dir, ScanOptions{})
	if !slices.IsSortedFunc(s.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("entries are not sorted")
	}
	for name, data := range files {
		e := s.Find(strings.TrimSuffix(name, "/"))
		if e == nil {
			t.Errorf("%q is missing", name)
			continue
		}
		target, isLink := strings.CutPrefix(data, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			if e.Kind != Dir {
				t.Errorf("%q has kind %d", name, e.Kind)
			}
		case isLink:
			if e.Kind != Link || e.Link != target || e.ID != SHA1.HashBlob([]byte(target)) {
				t.Errorf("%q is %+v", name, e)
			}
		case e.Kind != File || e.ID != SHA1.HashBlob([]byte(data)) || e.Size != int64(len(data)):
			t.Errorf("%q is %+v", name, e)
		}
	}
	if e := s.Find("fifo"); e == nil || e.Kind != Other {
		t.Errorf("fifo is %+v", e)
	}
}

// A path longer than one system call takes is walked by steps.
func TestScanDeeperThanPathMax(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	name := strings.Repeat("x", 200)
	for range 30 {
		must(t, root.Mkdir(name, 0o755))
		next, err := root.OpenRoot(name)
		must(t, err)
		must(t, root.Close())
		root = next
	}
	f, err := root.Create("leaf")
	must(t, err)
	must(t, errors.Join(f.Close(), root.Close()))
	s := scan(t, dir, ScanOptions{})
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
	prev := age(t, scan(t, dir, ScanOptions{}))
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
		fresh := scan(t, dir, ScanOptions{})
		reused := scan(t, dir, ScanOptions{Previous: prev})
		if want, got := sum(t, fresh), sum(t, reused); want != got {
			t.Fatalf("round %d: with Previous %s, without %s", round, got, want)
		}
		prev = reused // not aged: racily clean files must be read again
	}
}

func sum(t testing.TB, s *Snapshot) string {
	t.Helper()
	d, err := s.Digest()
	must(t, err)
	return d.String()
}

// A file that is written again within one tick, with the same size, can keep all
// its stat data but the content.
func TestScanIsNotFooledByRacyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	for i := range 200 {
		must(t, os.WriteFile(p, []byte("aaaa"), 0o644))
		s := scan(t, dir, ScanOptions{})
		data := fmt.Appendf(nil, "%04d", i)
		must(t, os.WriteFile(p, data, 0o644))
		for _, opt := range []ScanOptions{{Previous: s}, {Known: s.Known()}} {
			if got := scan(t, dir, opt).Find("f").ID; got != SHA1.HashBlob(data) {
				t.Fatalf("round %d: an old content id was believed", i)
			}
		}
	}
}

// What Previous vouches for is not read: here it would lie.
func TestScanTrustsPrevious(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"d/f": "x", "g": "y"})
	s := age(t, scan(t, dir, ScanOptions{}))
	mark := SHA1.HashBlob([]byte("mark"))
	s.Find("d/f").ID = mark
	if got := scan(t, dir, ScanOptions{Previous: s}).Find("d/f").ID; got != mark {
		t.Error("an unchanged file was read with Previous")
	}
	if got := scan(t, dir, ScanOptions{Known: s.Known()}).Find("d/f").ID; got != mark {
		t.Error("an unchanged file was read with Known")
	}
	must(t, os.Chtimes(filepath.Join(dir, "d/f"), time.Now(), time.Unix(5, 0)))
	if got := scan(t, dir, ScanOptions{Previous: s}).Find("d/f").ID; got == mark {
		t.Error("a touched file was not read")
	}
}

func TestScanSkipsAndStatOnly(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{".git/x": "1", "sub/.git/y": "2", "sub/f": "3", "f": "4"})
	s := scan(t, dir, ScanOptions{Contents: StatOnly, Skip: func(p string, _ Kind) bool { return filepath.Base(p) == ".git" }})
	if len(s.Entries) != 3 || s.Find(".git") != nil || s.Find("sub/.git") != nil {
		t.Errorf("entries %+v", s.Entries)
	}
	if !s.Find("f").ID.IsZero() {
		t.Error("a file was read")
	}
	if _, err := s.Digest(); err == nil {
		t.Error("a digest over unknown contents")
	}
	problems, err := HashMissing(t.Context(), s)
	if err != nil || len(problems) > 0 || s.Find("sub/f").ID != SHA1.HashBlob([]byte("3")) {
		t.Errorf("HashMissing: %v %v %+v", problems, err, s.Find("sub/f"))
	}
}

func TestScanNamesWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	dir := tree(t, map[string]string{"closed/f": "1", "secret": "2", "open": "3"})
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	must(t, os.Chmod(filepath.Join(dir, "secret"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	s, problems, err := Scan(t.Context(), dir, ScanOptions{Format: SHA1})
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
	if _, _, err := Scan(ctx, tree(t, map[string]string{"f": "1"}), ScanOptions{Format: SHA1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, _, err := Scan(t.Context(), filepath.Join(t.TempDir(), "none"), ScanOptions{Format: SHA1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
