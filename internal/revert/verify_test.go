package revert_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// The digest of what was verified is that of the base, and each difference has
// one line.
func TestVerify(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	must(t, os.Symlink("a", dir+"/link"))
	must(t, os.Mkdir(dir+"/empty", 0o755))
	p := remembered(t, dir)
	want, err := p.Base.Digest()
	must(t, err)
	for _, how := range []revert.Method{revert.Stat, revert.Full} {
		if v, err := p.Verify(t.Context(), how, nil); err != nil || v.Digest != want || len(v.Differences) > 0 {
			t.Errorf("%s: %v %+v", how, err, v)
		}
	}
	st, err := os.Stat(dir + "/b")
	must(t, err)
	write(t, dir+"/b", "TEXT OF b") // as long as before, and as old
	must(t, os.Chtimes(dir+"/b", time.Time{}, st.ModTime()))
	must(t, os.Remove(dir+"/link"))
	must(t, os.Symlink("b", dir+"/link"))
	must(t, os.Remove(dir+"/empty"))
	must(t, os.Chmod(dir+"/d/one", 0o600))
	must(t, os.Remove(dir+"/a"))
	must(t, os.Mkdir(dir+"/a", 0o755))
	write(t, dir+"/new\nline", "x")
	diffs := []string{"a: type changed", "b: modified", "d/one: mode changed from 0644 to 0600", "empty: deleted", "link: modified", `new\nline: created`}
	for _, how := range []revert.Method{revert.Stat, revert.Full} {
		if v, err := p.Verify(t.Context(), how, nil); err != nil || !slices.Equal(v.Differences, diffs) || !v.Digest.IsZero() {
			t.Errorf("%s: %v %q", how, err, v.Differences)
		}
	}
	p.restore(revert.RestoreOptions{})
}

// Full reads what Stat believes.
func TestVerifyFullReadsEverything(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	write(t, dir+"/b", "TEXT OF b")
	st, err := snapshot.StatEntry(dir + "/b")
	must(t, err)
	e := p.Base.Find("b") // as if nothing had happened to it since, long ago
	e.Stat = st.Stat
	p.Base.Taken = time.Now().Add(time.Hour)
	if v, err := p.Verify(t.Context(), revert.Stat, nil); err != nil || len(v.Differences) > 0 {
		t.Fatalf("%v %+v", err, v)
	}
	if v, err := p.Verify(t.Context(), revert.Full, nil); err != nil || !slices.Equal(v.Differences, []string{"b: modified"}) {
		t.Errorf("%v %+v", err, v)
	}
	res, err := p.Restore(t.Context(), revert.RestoreOptions{How: revert.Full})
	if err != nil || !slices.Equal(res.Differences, []string{"b: modified"}) || res.Verified {
		t.Errorf("what Stat does not see is not brought back, but told: %v %+v", err, res)
	}
}

// What was never read, and not kept, is reported when it is gone.
func TestVerifyTellsWhatIsLost(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	p.Base.Find("b").ID = snapshot.ID{}
	p.Aside = ""
	if v, err := p.Verify(t.Context(), revert.Stat, nil); err != nil || len(v.Differences) > 0 || !v.Digest.IsZero() {
		t.Errorf("untouched: %v %+v", err, v)
	}
	must(t, os.Remove(dir+"/b"))
	res, err := p.Restore(t.Context(), revert.RestoreOptions{})
	if err != nil || res.Verified || !slices.Equal(res.Differences, []string{"b: deleted"}) {
		t.Errorf("%v %+v", err, res)
	}
}

// What is lost or damaged where it was kept does not keep the rest from coming
// back, and is reported with the reason.
func TestRestoreTellsWhyNot(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	must(t, os.WriteFile(filepath.Join(p.Aside, "a"), []byte("TEXT OF a"), 0o644))
	must(t, os.Remove(filepath.Join(p.Aside, "d/one")))
	for _, name := range []string{"a", "b", "d"} {
		must(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	res, err := p.Restore(t.Context(), revert.RestoreOptions{})
	if err != nil || res.Verified || len(res.Differences) != 2 || !strings.HasPrefix(res.Differences[0], `a: deleted (what was kept of "a" is damaged`) || !strings.HasPrefix(res.Differences[1], "d/one: deleted (nothing was kept of ") {
		t.Fatalf("%v %+v", err, res)
	}
	for _, name := range []string{"b", "d/two", "d/e/three"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "text of "+name {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	if left, err := filepath.Glob(dir + "/.superqode-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Folders and files that somebody closed are opened for the look, and end up as
// they were; those that were closed before are changed nevertheless.
func TestRestoreClosedFolders(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	dir := fill(t)
	write(t, dir+"/ro/sub/file", "x")
	write(t, dir+"/ro/other", "y")
	must(t, os.Chmod(dir+"/ro/sub", 0o500))
	must(t, os.Chmod(dir+"/ro", 0o555))
	must(t, os.Chmod(dir+"/b", 0o400))
	p := remembered(t, dir)
	must(t, exec.Command("sh", "-c", "cd '"+dir+"' && chmod -R u+w ro && echo z > ro/sub/new && rm ro/other && chmod 000 d/e/three d/e d ro/sub a && chmod 444 ro && chmod 000 ro").Run())
	p.restore(revert.RestoreOptions{How: revert.Full})
	must(t, exec.Command("sh", "-c", "cd '"+dir+"' && chmod u+w ro && rm ro/other && chmod 555 ro && rm -rf d && mkdir -p d/x/y && chmod 000 d/x").Run())
	p.restore(revert.RestoreOptions{})
}

// Any tree comes back from any other.
func TestRestoreRandomTrees(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			dir := t.TempDir()
			for range 40 {
				scramble(t, rnd, dir)
			}
			p := remembered(t, dir)
			for range 30 {
				scramble(t, rnd, dir)
			}
			p.restore(revert.RestoreOptions{How: []revert.Method{revert.Stat, revert.Full}[seed%2]})
		})
	}
}

// scramble does one random thing to a random path.
func scramble(t *testing.T, rnd *rand.Rand, dir string) {
	t.Helper()
	path := dir
	words := []string{"a", "b", "a-b", "a.b", "c\n", "ü", "-x", "a0"}
	for range 1 + rnd.IntN(3) {
		path = filepath.Join(path, words[rnd.IntN(len(words))])
	}
	if rnd.IntN(3) > 0 {
		openUp(filepath.Dir(path))
		_ = os.MkdirAll(filepath.Dir(path), 0o755) // fails where a file stands
	}
	if st, err := os.Stat(filepath.Dir(path)); err != nil || !st.IsDir() {
		return // os.RemoveAll would wait for a FIFO
	}
	switch rnd.IntN(9) {
	case 0:
		_ = os.RemoveAll(path)
	case 1:
		_ = os.Mkdir(path, 0o755)
	case 2:
		_ = os.Symlink(words[rnd.IntN(len(words))], path)
	case 3:
		_ = syscall.Mkfifo(path, 0o600)
	case 4:
		_ = os.Chmod(path, os.FileMode([]int{0o700, 0o755, 0o500, 0o644}[rnd.IntN(4)]))
	case 5:
		_ = os.Rename(path, filepath.Join(dir, words[rnd.IntN(len(words))]))
	default:
		if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
			return // a FIFO would be waited for
		}
		_ = os.WriteFile(path, []byte(strings.Repeat("x", rnd.IntN(5))), 0o644)
	}
}

// openUp gives the owner all rights to what is below dir. It follows no link, not
// even one at dir: chmod -R would.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if info, err := os.Lstat(path); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			_ = os.Chmod(path, info.Mode().Perm()|0o700)
		}
		return nil // what cannot be opened fails its test
	})
}

// Names of one file are names of one file again, whatever became of it or of
// them.
func TestRestoreHardLinks(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"one removed":    "rm one",
		"all removed":    "rm -r one d",
		"written to":     "echo more >> one",
		"one replaced":   "cp one x; echo y >> x; mv x one",
		"all replaced":   "for f in one d/two d/three; do rm $f; echo $f > $f; done",
		"swapped":        "ln -f other one",
		"one touched":    "touch -d 2001-01-01 one",
		"one copied":     "cp -p one x; mv x one",
		"all copied":     "for f in one d/two d/three; do cp -p $f x; mv x $f; done",
		"two copied":     "cp one x; mv x one; echo y >> d/two; cp d/three x; rm d/three; mv x d/three",
		"joined others":  "echo text > other; rm d/two; ln other d/two",
		"one a folder":   "rm d/two; mkdir d/two",
		"folder a link":  "mv d e; ln -s e d",
		"one and others": "rm one; echo x >> other; rm -r d/three",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir+"/one", "text")
			write(t, dir+"/other", "other text")
			must(t, os.Mkdir(dir+"/d", 0o755))
			must(t, os.Link(dir+"/one", dir+"/d/two"))
			must(t, os.Link(dir+"/one", dir+"/d/three"))
			p := remembered(t, dir)
			cmd := exec.Command("sh", "-ec", script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p.restore(revert.RestoreOptions{How: revert.Full})
			st, err := os.Stat(dir + "/one")
			must(t, err)
			for _, other := range []string{"/d/two", "/d/three"} {
				if o, err := os.Stat(dir + other); err != nil || !os.SameFile(st, o) {
					t.Errorf("%s is another file (%v)", other, err)
				}
			}
			if o, err := os.Stat(dir + "/other"); err != nil || os.SameFile(st, o) {
				t.Errorf("other is the same file (%v)", err)
			}
		})
	}
}

// Files that were two are not left as one, even when they hold the same: the next
// change of one would be one of the other.
func TestRestoreSeparatesFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a", "same")
	write(t, dir+"/b", "same")
	p := remembered(t, dir)
	must(t, os.Remove(dir+"/b"))
	must(t, os.Link(dir+"/a", dir+"/b"))
	p.restore(revert.RestoreOptions{})
	a, err := os.Stat(dir + "/a")
	must(t, err)
	if b, err := os.Stat(dir + "/b"); err != nil || os.SameFile(a, b) {
		t.Errorf("they are one file (%v)", err)
	}
}
