// Package snaptest makes trees for the tests of snapshots, and looks at them the
// slow and obvious way.
package snaptest

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Walk records dir the slow and obvious way. With ids it reads every file.
func Walk(tb testing.TB, dir string, ids bool) *snapshot.Snapshot {
	tb.Helper()
	s := &snapshot.Snapshot{Root: dir, Format: snapshot.SHA1, Taken: time.Now()}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." {
			return nil
		}
		if filepath.Base(rel) == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		e := snapshot.Entry{Path: superqode.RelPath(rel), Perm: uint32(st.Mode) & 0o7777, Stat: snapshot.StatOf(&st)}
		switch uint32(st.Mode) & unix.S_IFMT {
		case unix.S_IFREG:
			e.Kind, e.Size = snapshot.File, st.Size
			if ids {
				b, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				e.ID = snapshot.SHA1.HashBlob(b)
			}
		case unix.S_IFLNK:
			e.Kind = snapshot.Link
			if e.Link, err = os.Readlink(p); err != nil {
				return err
			}
			e.Size, e.ID = int64(len(e.Link)), snapshot.SHA1.HashBlob([]byte(e.Link))
		case unix.S_IFDIR:
			e.Kind = snapshot.Dir
		default:
			e.Kind = snapshot.Other
		}
		s.Entries = append(s.Entries, e)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	sort.Slice(s.Entries, func(i, j int) bool { return s.Entries[i].Path < s.Entries[j].Path })
	return s
}

// Same fails unless both snapshots hold the same paths, kinds, modes,
// contents and, with times, mtimes.
func Same(tb testing.TB, want, got *snapshot.Snapshot, times bool) {
	tb.Helper()
	if len(want.Entries) != len(got.Entries) {
		tb.Errorf("%d entries, want %d", len(got.Entries), len(want.Entries))
	}
	for i := range min(len(want.Entries), len(got.Entries)) {
		w, g := want.Entries[i], got.Entries[i]
		if !times {
			w.Stat.Mtime, g.Stat.Mtime = 0, 0
		}
		w.Stat = snapshot.Stat{Mtime: w.Stat.Mtime}
		g.Stat = snapshot.Stat{Mtime: g.Stat.Mtime}
		if w != g {
			tb.Fatalf("entry %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

// Write makes a file, and the folders on the way to it.
func Write(tb testing.TB, root, path, data string, perm os.FileMode) {
	tb.Helper()
	p := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := unix.Chmod(p, uint32(perm)); err != nil {
		tb.Fatal(err)
	}
}

// Unlock makes a tree deletable again.
func Unlock(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(p, 0o755)
		}
		return nil
	})
}

// Tree makes files below a fresh directory: a name that ends in a slash is a
// folder, a value "-> x" a link to x.
func Tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, name)
		Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		target, isLink := strings.CutPrefix(data, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			Must(t, os.MkdirAll(p, 0o755))
		case isLink:
			Must(t, os.Symlink(target, p))
		default:
			Must(t, os.WriteFile(p, []byte(data), 0o644))
		}
	}
	return dir
}

// Must fails on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Scan records dir, in SHA-1 where opt names no format.
func Scan(t testing.TB, dir string, opt snapshot.ScanOptions) *snapshot.Snapshot {
	t.Helper()
	if opt.Format == 0 {
		opt.Format = snapshot.SHA1
	}
	s, problems, err := snapshot.Scan(context.Background(), dir, opt)
	Must(t, err)
	for _, p := range problems {
		t.Fatal(p)
	}
	return s
}

// Age makes all files old enough to be trusted.
func Age(t testing.TB, s *snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	s.Taken = time.Now().Add(time.Hour)
	return s
}

// GitEnv is an environment in which git reads no configuration of the user.
func GitEnv(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost",
	}
}

// Git runs git in dir and returns what it printed.
func Git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, GitEnv(dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Bench writes n files of 20 a folder, sizes as in real repositories (most
// below 8 KB, 6 KB on average), and returns its folder.
func Bench(tb testing.TB, n int) string {
	tb.Helper()
	rnd := rand.New(rand.NewSource(1))
	text := make([]byte, 1<<18)
	for i := range text {
		text[i] = "abcdefghij klmnopqr stuvwxyz\n0123"[rnd.Intn(33)]
	}
	root := filepath.Join(tb.TempDir(), "origin")
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%d/e%d", i/400, i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				tb.Fatal(err)
			}
		}
		size := min(int(rnd.ExpFloat64()*6000), 1<<17)
		at := rnd.Intn(len(text) - size)
		if err := os.WriteFile(fmt.Sprintf("%s/file%d.go", dir, i), text[at:at+size], 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// Spec is what a directory holds: path to contents, "-> target" for a link. A
// path that ends in "*" is executable (without the star); contents "DIR" make an
// empty folder.
type Spec map[string]string

// Write makes what t says in dir.
func (t Spec) Write(tb testing.TB, dir string) {
	for p, data := range t {
		perm := os.FileMode(0o644)
		if q, ok := strings.CutSuffix(p, "*"); ok {
			p, perm = q, 0o755
		}
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			tb.Fatal(err)
		}
		var err error
		switch target, link := strings.CutPrefix(data, "-> "); {
		case link:
			err = os.Symlink(target, full)
		case data == "DIR":
			err = os.Mkdir(full, 0o755)
		default:
			Write(tb, dir, p, data, perm)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}
