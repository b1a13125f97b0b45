package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/rooted"
)

func TestCollect(t *testing.T) {
	t.Parallel()
	s, id, staging := openStore(t), sessionAt(t, 0), t.TempDir()
	sid := id.String()
	want := map[string]string{} // path in the store → type
	for rel, w := range map[string][2]string{
		"evidence/shot.png":                             {"evidence/%s/shot.png", "screenshot"},
		"evidence/SHOT.JPG":                             {"evidence/%s/SHOT.JPG", "screenshot"},
		"evidence/a/b/x.trace":                          {"evidence/%s/a/b/x.trace", "trace"},
		"evidence/notes.md":                             {"evidence/%s/notes.md", "summary"},
		"evidence/app.log":                              {"evidence/%s/app.log", "log"},
		"evidence/boom.crash":                           {"evidence/%s/boom.crash", "error"},
		"evidence/data.bin":                             {"evidence/%s/data.bin", "trace"},
		"generated-tests/unit/a_test.go":                {"generated-tests/unit/%s/a_test.go", "test_unit"},
		"generated-tests/e2e/deep/b.spec.ts":            {"generated-tests/e2e/%s/deep/b.spec.ts", "test_e2e"},
		"generated-tests/odd/c.py":                      {"generated-tests/unit/%s/odd/c.py", "test_unit"},
		"generated-tests/unit2":                         {"evidence/%s/generated-tests/unit2", "trace"},
		"logs/run.txt":                                  {"logs/%s/run.txt", "log"},
		"coverage.out":                                  {"coverage/%s/coverage.out", "coverage"},
		"reports/jacoco.xml":                            {"coverage/%s/reports/jacoco.xml", "coverage"},
		"coverage.go":                                   {"evidence/%s/coverage.go", "trace"},
		"coverage/lcov.info":                            {"coverage/%s/lcov.info", "coverage"},
		"patches/p.patch":                               {"patches/%s/p.patch", "patch"},
		"patches/fix-f1.patch":                          {"patches/%s/fix-f1.patch", "fix"},
		"qr/extra.json":                                 {"qr/%s/extra.json", "qr"},
		"findings/f.json":                               {"evidence/%s/findings/f.json", "summary"},
		"top.txt":                                       {"evidence/%s/top.txt", "log"},
		"evidence":                                      {"", ""},
		"evidence/-rf":                                  {"evidence/%s/-rf", "trace"},
		"evidence/new\nline.png":                        {"evidence/%s/new\nline.png", "screenshot"},
		"evidence/\xff\xfe.png":                         {"evidence/%s/\xff\xfe.png", "screenshot"},
		"evidence/" + strings.Repeat("n", 255):          {"evidence/%s/" + strings.Repeat("n", 255), "trace"},
		"manifest.json":                                 {"evidence/%s/manifest.json", "trace"},
		"evidence/" + ".superqode-tmp-" + "looks-alike": {"evidence/%s/" + ".superqode-tmp-" + "looks-alike", "trace"},
		"empty.log":                                     {"evidence/%s/empty.log", "log"},
	} {
		if w[0] == "" {
			continue
		}
		content := rel
		if rel == "empty.log" {
			content = ""
		}
		mustWrite(t, content, staging, rel)
		want[fmt.Sprintf(w[0], sid)] = w[1]
	}
	secret := filepath.Join(t.TempDir(), "secret")
	mustWrite(t, "secret", secret)
	for link, target := range map[string]string{"evidence/link.png": secret, "folderlink": filepath.Dir(secret), "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(staging, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(staging, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(staging, "sock"))
	if errors.Is(err, syscall.EINVAL) {
		t.Skip("the temporary folder's path is too long for a socket")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(filepath.Join(staging, "generated-tests/unit/a_test.go"), 0o755); err != nil {
		t.Fatal(err)
	}

	for round := range 2 { // the second adds nothing
		list, problems, err := Collect(context.Background(), s, CollectOptions{Folder: staging, Session: id})
		if err != nil {
			t.Fatal(err)
		}
		got := map[superqode.RelPath]string{}
		for _, a := range list {
			got[a.Path] = string(a.Type)
			if content := mustRead(t, s.File(a)); content != a.OriginalFile && a.Size > 0 {
				t.Errorf("%q holds %q", a.Path.String(), content)
			}
			if strings.HasSuffix(a.OriginalFile, "a_test.go") && a.Metadata["mode"] != "100755" {
				t.Errorf("the mode of an executable file is lost: %v", a.Metadata)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: collected\n%q\nwant\n%q", round, got, want)
		}
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.String())
		}
		wantLines := []string{"dangling: a symbolic link, left out", "evidence/link.png: a symbolic link, left out",
			"folderlink: a symbolic link, left out", "pipe: a FIFO, left out", "sock: a socket, left out"}
		if !slices.Equal(lines, wantLines) {
			t.Errorf("problems %q, want %q", lines, wantLines)
		}
		wantOKNoTemps(t, s, len(want))
	}
}

// wantOKNoTemps is wantOK where a collected file is named like a temporary one.
func wantOKNoTemps(t *testing.T, s *artifacts.Store, n int) {
	t.Helper()
	if c := mustVerify(t, s); !c.OK() || c.Checked != n {
		t.Errorf("Verify = %+v, want %d", c, n)
	}
	if temps := leftovers(t, s); len(temps) != 1 {
		t.Errorf("temporary files: %v", temps)
	}
}

func TestCollectClash(t *testing.T) {
	t.Parallel()
	s, id, staging := openStore(t), sessionAt(t, 0), t.TempDir()
	mustWrite(t, "1", staging, "evidence/x.png")
	mustWrite(t, "2", staging, "x.png") // both belong to evidence/<session-id>/x.png
	list, problems, err := Collect(context.Background(), s, CollectOptions{Folder: staging, Session: id})
	if err != nil || len(problems) > 0 || len(list) != 2 || !strings.HasSuffix(list[1].Path.String(), "/x-2.png") {
		t.Errorf("Collect = %+v, %v, %v", list, problems, err)
	}
	wantOK(t, s, 2)
}

func TestCollectFromBadFolders(t *testing.T) {
	t.Parallel()
	s, id, dir := openStore(t), sessionAt(t, 0), t.TempDir()
	list, problems, err := Collect(context.Background(), s, CollectOptions{Folder: filepath.Join(dir, "none"), Session: id})
	if err != nil || len(list) > 0 || len(problems) != 1 {
		t.Errorf("a missing folder: %v, %v, %v", list, problems, err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Collect(context.Background(), s, CollectOptions{Folder: filepath.Join(dir, "link"), Session: id}); err == nil {
		t.Error("a link was collected from")
	}
	if _, _, err := Collect(context.Background(), s, CollectOptions{Folder: dir}); err == nil {
		t.Error("collected without a session")
	}
	deep := dir
	for range rooted.MaxDepth + 20 {
		deep = filepath.Join(deep, "d")
	}
	mustWrite(t, "x", deep, "file")
	list, problems, err = Collect(context.Background(), s, CollectOptions{Folder: dir, Session: id})
	if err != nil || len(list) != 0 || len(problems) != 2 || !strings.Contains(problems[0].Reason, "deep") {
		t.Errorf("deep nesting: %v, %v, %v", list, problems, err)
	}
}

// TestCollectFromRunning collects while a program works in the folder: nothing
// fails, and what is in the store is whole.
func TestCollectFromRunning(t *testing.T) {
	t.Parallel()
	s, id, staging := openStore(t), sessionAt(t, 0), t.TempDir()
	for i := range 200 {
		mustWrite(t, fmt.Sprint(i), staging, "evidence", fmt.Sprint(i))
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i = (i + 1) % 200 {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(staging, "evidence", fmt.Sprint(i))
			switch i % 3 {
			case 0:
				os.Remove(name)
				os.Symlink("/etc/passwd", name)
			case 1:
				os.Remove(name)
			case 2:
				os.WriteFile(name, []byte("again"), 0o600)
			}
		}
	}()
	list, problems, err := Collect(context.Background(), s, CollectOptions{Folder: staging, Session: id})
	close(stop)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Size > 5 {
			t.Errorf("%s has %d bytes: a link was followed", a.Path, a.Size)
		}
	}
	for _, p := range problems {
		if p.Reason == "" || p.Path == "" {
			t.Errorf("a problem without name or reason: %+v", p)
		}
	}
	wantOK(t, s, len(list))
}

func TestCollectCancelled(t *testing.T) {
	t.Parallel()
	s, id, staging := openStore(t), sessionAt(t, 0), t.TempDir()
	mustWrite(t, "x", staging, "a")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if list, _, err := Collect(ctx, s, CollectOptions{Folder: staging, Session: id}); err == nil || len(list) > 0 {
		t.Errorf("Collect = %v, %v", list, err)
	}
	wantOK(t, s, 0)
}

func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range Folders() {
		if err := os.Mkdir(filepath.Join(dir, f), 0o700); err != nil { // outermost first
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "generated-tests/security")); err != nil || info.Mode()&fs.ModeDir == 0 {
		t.Error(err)
	}
}

// sessionAt returns a session id that is the same in every run of a test.
func sessionAt(t testing.TB, n int) superqode.SessionID {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour)
	id, err := superqode.ParseSessionID("qe-" + at.Format("20060102-150405") + "-abcde" + string(rune('a'+n%26)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func openStore(t testing.TB) *artifacts.Store {
	t.Helper()
	s, err := artifacts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustVerify(t testing.TB, s *artifacts.Store) artifacts.Check {
	t.Helper()
	c, err := s.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantOK(t testing.TB, s *artifacts.Store, checked int) {
	t.Helper()
	if c := mustVerify(t, s); !c.OK() || c.Checked != checked {
		t.Errorf("Verify = %+v, want %d good entries and nothing else", c, checked)
	}
	if temps := leftovers(t, s); len(temps) > 0 {
		t.Errorf("temporary files stayed: %v", temps)
	}
}

func leftovers(t testing.TB, s *artifacts.Store) (list []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(s.Dir()), func(p string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".superqode-tmp-") {
			list = append(list, p)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return list
}

func mustRead(t testing.TB, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustWrite(t testing.TB, content string, elem ...string) {
	t.Helper()
	name := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
