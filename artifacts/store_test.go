package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	if _, err := os.Lstat(filepath.Join(s.origin, dotName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open made %s: %v", dotName, err)
	}
	wantOK(t, s, 0)
	id := sessionAt(t, 0)
	for _, tt := range []struct {
		new  New
		id   string
		path string
	}{
		{New{Type: TypePatch, Path: SessionPatch(id)}, "patch-001", "patches/" + id.String() + ".patch"},
		{New{Type: TypeTestUnit, Name: "a_test.go"}, "test-unit-002", "generated-tests/unit/" + id.String() + "/a_test.go"},
		{New{Type: TypeTestE2E, Name: "b"}, "test-e2e-003", "generated-tests/e2e/" + id.String() + "/b"},
		{New{Type: TypeScreenshot, Name: "../c.png"}, "screenshot-004", "evidence/" + id.String() + "/c.png"},
		{New{Type: TypeLog, Path: SessionLog(id, "command")}, "log-005", "logs/" + id.String() + "-command.log"},
		{New{Type: TypeCoverage, Name: "cov.out"}, "coverage-006", "coverage/" + id.String() + "/cov.out"},
		{New{Type: TypeQR, Path: ReportFile(id, "html")}, "qr-007", "qr/qr-20260102-" + id.String() + ".html"},
	} {
		tt.new.Session, tt.new.Data = id, []byte(tt.id)
		a := mustAdd(t, s, tt.new)
		if a.ID != tt.id || a.Path.String() != tt.path {
			t.Errorf("added %s at %s, want %s at %s", a.ID, a.Path, tt.id, tt.path)
		}
	}
	wantOK(t, s, 7)
	if got := mustRead(t, s.origin, ".superqode/.gitignore"); got != "*\n" {
		t.Errorf(".gitignore holds %q", got)
	}
	err := filepath.WalkDir(filepath.Join(s.origin, dotName), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", p, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLinksAreRefused(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for _, link := range []string{dotName, dotName + "/" + storeName} {
		origin := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(origin, link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(origin, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(origin); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("Open with %s a link: %v", link, err)
		}
	}
	for _, link := range []string{"evidence", "evidence/manual", manifestName, "../" + lockName} {
		s := openStore(t)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.Dir(), link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(elsewhere, "x"), filepath.Join(s.Dir(), link)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(context.Background(), New{Type: TypeTrace, Name: "n", Data: []byte("x")}); err == nil {
			t.Errorf("Add with %s a link succeeded", link)
		}
		if temps := leftovers(t, s); len(temps) > 0 {
			t.Errorf("temporary files stayed: %v", temps)
		}
	}
	if list, err := os.ReadDir(elsewhere); err != nil || len(list) > 0 {
		t.Errorf("something was written through a link: %v %v", list, err)
	}
}

func TestAddErrors(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	dir := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		new  New
	}{
		{"artifact type", New{Type: "video", Name: "x"}},
		{"artifact type", New{Name: "x"}},
		{"no name", New{Type: TypeLog}},
		{"no name", New{Type: TypeLog, Name: ".."}},
		{"leads out", New{Type: TypeLog, Path: "../x"}},
		{"absolute", New{Type: TypeLog, Path: "/logs/x"}},
		{"none of the folders", New{Type: TypeLog, Path: "manifest.json"}},
		{"none of the folders", New{Type: TypeLog, Path: "other/x"}},
		{"no such file", New{Type: TypeLog, File: filepath.Join(dir, "missing")}},
		{"symbolic link", New{Type: TypeLog, File: filepath.Join(dir, "link")}},
		{"FIFO", New{Type: TypeLog, File: filepath.Join(dir, "fifo")}},
		{"a folder", New{Type: TypeLog, File: dir}},
		{"torn", New{Type: TypeLog, Name: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(failing{}), nil }}},
	} {
		good := New{Type: TypeLog, Name: "good", Data: []byte("g")}
		if _, err := s.AddAll(context.Background(), []New{good, tt.new}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("AddAll(%+v) = %v, want an error with %q", tt.new, err, tt.want)
		}
	}
	wantOK(t, s, 0) // all or none
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("torn") }

func TestAddAgain(t *testing.T) {
	t.Parallel()
	s, id := openStore(t), sessionAt(t, 0)
	log := New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte("one")}
	first := mustAdd(t, s, log)
	if again := mustAdd(t, s, log); again.ID != first.ID || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("adding the same again gave %+v, want %+v", again, first)
	}
	log.Data = []byte("two")
	if a := mustAdd(t, s, log); a.ID != first.ID || mustRead(t, s.File(a)) != "two" {
		t.Errorf("replacing gave %+v, want the id %s and the new content", a, first.ID)
	}
	wantOK(t, s, 1)
	other := log
	other.Session = sessionAt(t, 1)
	if _, err := s.Add(context.Background(), other); !errors.Is(err, superqode.ErrConflict) {
		t.Errorf("another session took the path: %v", err)
	}
	// Somebody's edit is set aside, never overwritten.
	mustWrite(t, "edited", s.File(first))
	log.Data = []byte("three")
	mustAdd(t, s, log)
	if got := mustRead(t, s.File(first)+".replaced-1"); got != "edited" {
		t.Errorf("the edited file was kept as %q", got)
	}
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0].String(), "replaced-1") {
		t.Errorf("Warnings = %v", w)
	}
	// A lost file is repaired.
	if err := os.Remove(s.File(first)); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, log)
	if c := mustVerify(t, s); len(c.Unknown) != 1 || c.Checked != 1 || len(c.Missing) > 0 {
		t.Errorf("Verify = %+v", c)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	s, ctx := openStore(t), context.Background()
	var added []Artifact
	for i := range 3 {
		added = append(added, mustAdd(t, s, New{Type: TypeScreenshot, Name: "shot.png", Data: fmt.Append(nil, i)}))
	}
	mustAdd(t, s, New{Type: TypeScreenshot, Name: "a@2", Data: []byte("at")})
	if added[1].Path.String() != "evidence/manual/shot-2.png" || added[1].Name != "shot.png" {
		t.Errorf("the second version is %+v", added[1])
	}
	for name, want := range map[string]string{
		"shot.png": "screenshot-003", "shot.png@1": "screenshot-001", "shot.png@3": "screenshot-003", "screenshot-002": "screenshot-002", "a@2": "screenshot-004",
	} {
		if a, err := s.Get(ctx, name); err != nil || a.ID != want {
			t.Errorf("Get(%q) = %s, %v, want %s", name, a.ID, err, want)
		}
	}
	for _, name := range []string{"shot.png@0", "shot.png@4", "shot.png@-1", "shot.png@x", "@1", "", "nope"} {
		if a, err := s.Get(ctx, name); !errors.Is(err, superqode.ErrNotFound) {
			t.Errorf("Get(%q) = %s, %v, want ErrNotFound", name, a.ID, err)
		}
	}
	f, err := s.OpenArtifact(added[1])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(s.File(added[2])); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenArtifact(added[2]); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("OpenArtifact of a lost file: %v", err)
	}
}

func TestSameNameInOneCall(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	list, err := s.AddAll(context.Background(), []New{
		{Type: TypeLog, Name: "x.txt", Data: []byte("1")}, {Type: TypeLog, Name: "x.txt", Data: []byte("2")}, {Type: TypeLog, Name: "x.txt", Data: []byte("1")},
	})
	if err != nil || len(list) != 3 || list[0].ID != list[2].ID || list[1].Path.String() != "logs/manual/x-2.txt" {
		t.Errorf("AddAll = %+v, %v", list, err)
	}
	wantOK(t, s, 2)
	_, err = s.AddAll(context.Background(), []New{{Type: TypeLog, Path: "logs/a", Data: []byte("1")}, {Type: TypeLog, Path: "logs/a", Data: []byte("2")}})
	if err == nil {
		t.Error("one path given twice was accepted")
	}
	wantOK(t, s, 2)
}

// TestConcurrent shares one Store between goroutines, for the race detector.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s, ctx := openStore(t), context.Background()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 5 {
				if _, err := s.Add(ctx, New{Type: TypeTrace, Name: fmt.Sprint(i, k), Data: fmt.Append(nil, i, k)}); err != nil {
					t.Error(err)
				}
				if c, err := s.Verify(ctx); err != nil || !c.OK() {
					t.Errorf("Verify amid others' work: %+v, %v", c, err)
				}
				if _, err := s.List(ctx, Filter{Type: TypeTrace}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantOK(t, s, 40)
}

// TestManyProcesses is the promise of docs/formats.md: N processes never lose
// an entry.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	const processes, each = 20, 10
	var wg sync.WaitGroup
	for i := range processes {
		cmd := childCommand(t, "add", s.origin, fmt.Sprint("p", i), fmt.Sprint(each))
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process: %v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	wantOK(t, s, processes*each)
	list, err := s.List(context.Background(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, a := range list {
		ids[a.ID] = true
	}
	if len(ids) != processes*each || !ids[fmt.Sprintf("trace-%03d", processes*each)] {
		t.Errorf("%d different ids, want trace-001 to trace-%d", len(ids), processes*each)
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	n := 0
	for _, name := range []string{"-n", "a\nb", "\xff\xfe", " ", "a\tb", "ü", strings.Repeat("x", 255), "$(x)", "a|b", "\x1b[31m", ".hidden", tempPrefix + "x"} {
		for _, content := range []string{"1", "2"} {
			a := mustAdd(t, s, New{Type: TypeTrace, Name: name, Data: []byte(content)})
			if got := mustRead(t, s.File(a)); got != content {
				t.Errorf("%q holds %q, want %q", a.Path.String(), got, content)
			}
			n++
		}
	}
	wantCount(t, s, n)
	c := mustVerify(t, s)
	if !c.OK() || c.Checked != n {
		t.Errorf("Verify = %+v", c)
	}
}

func wantCount(t testing.TB, s *Store, n int) {
	t.Helper()
	if list, err := s.List(context.Background(), Filter{}); err != nil || len(list) != n {
		t.Errorf("List = %d entries, %v, want %d", len(list), err, n)
	}
}
