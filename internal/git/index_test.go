package git

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
)

// indexRepo is a repository whose git reads no configuration of the user.
type indexRepo struct {
	t   testing.TB
	dir string
}

func newIndexRepo(t testing.TB, format string) indexRepo {
	t.Helper()
	r := indexRepo{t, t.TempDir()}
	r.git("init", "-q", "--object-format="+format)
	return r
}

func (r indexRepo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(CleanEnv(os.Environ()), "HOME="+r.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (r indexRepo) write(name, data string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r indexRepo) fill() {
	for i := range 40 {
		r.write(fmt.Sprintf("dir%d/sub/file-%d.txt", i%7, i), fmt.Sprint(i))
	}
	r.write("a-b", "1")
	r.write("a/b", "2")
	r.write("a.b", "3")
	r.write("long/"+strings.Repeat("x", 250)+"/"+strings.Repeat("y", 250), "long")
	r.write("odd\nname \xff", "odd")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.write("intent", "later")
	r.git("add", "-N", "intent")
	r.git("update-index", "--skip-worktree", "a/b")
	r.git("update-index", "--assume-unchanged", "a-b")
	id := strings.Fields(r.git("ls-files", "-s", "a-b"))[1]
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir = r.dir
	cmd.Stdin = strings.NewReader(fmt.Sprintf("100644 %s 1\tunmerged\n100644 %s 2\tunmerged\n100755 %s 3\tunmerged\n", id, id, id))
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("update-index: %v %s", err, out)
	}
}

// list prints an index in the words of `git ls-files -s -t -v --debug -z`.
func list(x *Index) string {
	var b strings.Builder
	for _, e := range x.Entries() {
		fmt.Fprintf(&b, "%06o %x %d\t%s\x00", e.Mode, e.OID, e.Stage, e.Path)
		s := e.Stat
		fmt.Fprintf(&b, "  ctime: %d:%d\n  mtime: %d:%d\n  dev: %d\tino: %d\n  uid: %d\tgid: %d\n  size: %d\t", s.CtimeSec, s.CtimeNsec, s.MtimeSec, s.MtimeNsec, s.Dev, s.Ino, s.UID, s.GID, s.Size)
		b.WriteString("\n")
	}
	return b.String()
}

// gitList is git's own listing without the in-memory flags that end each entry.
func gitList(r indexRepo) string {
	out := r.git("ls-files", "-s", "-z", "--debug")
	var b strings.Builder
	for rest := out; rest != ""; {
		head, tail, _ := strings.Cut(rest, "flags: ")
		_, after, _ := strings.Cut(tail, "\n")
		b.WriteString(head + "\n")
		rest = after
	}
	return b.String()
}

func TestReadIndex(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for _, setup := range [][]string{
			{"update-index", "--index-version=2"}, {"update-index", "--index-version=3"}, {"update-index", "--index-version=4"},
			{"update-index", "--split-index"}, {"update-index", "--untracked-cache"}, {"-c", "index.skipHash=true", "-c", "feature.manyFiles=true", "update-index", "--force-write-index"},
		} {
			t.Run(format+strings.Join(setup, " "), func(t *testing.T) {
				t.Parallel()
				r := newIndexRepo(t, format)
				r.fill()
				r.git(setup...)
				if strings.Contains(setup[1], "split") {
					r.git("rm", "-q", "--cached", "a.b")
					r.write("dir1/sub/file-1.txt", "changed")
					r.write("zz", "new")
					r.git("add", "dir1", "zz")
				}
				x, err := ReadIndex(filepath.Join(r.dir, ".git/index"), format)
				if err != nil {
					t.Fatal(err)
				}
				if err := x.Verify(); err != nil {
					t.Error(err)
				}
				want := gitList(r)
				if diff := cmp.Diff(want, list(x)); diff != "" {
					t.Fatal(diff)
				}
				checkFlags(t, x)
				rewrite(t, r, x, want)
			})
		}
	}
}

func checkFlags(t *testing.T, x *Index) {
	t.Helper()
	for path, want := range map[superqode.RelPath]IndexEntry{
		"intent": {IntentToAdd: true}, "a/b": {SkipWorktree: true}, "a-b": {AssumeValid: true}, "dir3/sub/file-3.txt": {},
	} {
		i, ok := x.Search(path)
		if !ok {
			t.Fatalf("%s not found", path)
		}
		if e := x.At(i); e.IntentToAdd != want.IntentToAdd || e.SkipWorktree != want.SkipWorktree || e.AssumeValid != want.AssumeValid {
			t.Errorf("flags of %s: %+v", path, e)
		}
	}
	for dir, want := range map[string]bool{"a": true, "dir3": true, "dir3/sub": true, "dir": false, "zzz": false, "a-b": false, "long": true} {
		if i, ok := x.SearchDir(superqode.RelPath(dir)); ok != want || ok && !strings.HasPrefix(string(x.Path(i)), dir+"/") {
			t.Errorf("SearchDir(%q) = %d, %v", dir, i, ok)
		}
	}
}

// rewrite writes x as it is and then with zeroed stat data; git must read both.
func rewrite(t *testing.T, r indexRepo, x *Index, want string) {
	t.Helper()
	path := filepath.Join(r.dir, ".git/index")
	flags := r.git("ls-files", "-v", "-t")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Write(path, func(i int) IndexStat { return x.At(i).Stat }); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !x.Split && !hasCache(x) && !bytes.Equal(old, now) {
		t.Error("rewriting without a change changes bytes")
	}
	if diff := cmp.Diff(want, gitList(r)); diff != "" {
		t.Error(diff)
	}
	if err := x.Write(path, func(int) IndexStat { return IndexStat{} }); err != nil {
		t.Fatal(err)
	}
	r.git("fsck", "--no-dangling")
	if diff := cmp.Diff(flags, r.git("ls-files", "-v", "-t")); diff != "" {
		t.Error(diff)
	}
	z, err := ReadIndex(path, map[int]string{20: "sha1", 32: "sha256"}[x.hashSize])
	if err != nil || z.Verify() != nil || hasCache(z) {
		t.Errorf("reading back: %v, %v", err, z.Verify())
	}
}

// hasCache reports whether the index has git's untracked cache.
func hasCache(x *Index) bool {
	return slices.ContainsFunc(x.exts, func(e indexExt) bool { return e.sig == "UNTR" })
}

func TestReadIndexMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := ReadIndex(filepath.Join(dir, "index"), "sha1")
	if err != nil || x.Len() != 0 || x.Verify() != nil {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, ok := x.Search("a"); ok {
		t.Error("found something")
	}
	if err := x.Write(filepath.Join(dir, "index"), nil); err != nil {
		t.Fatal(err)
	}
	if x, err = ReadIndex(filepath.Join(dir, "index"), "sha1"); err != nil || x.Verify() != nil {
		t.Errorf("%v", err)
	}
}

func TestSparseIndex(t *testing.T) {
	t.Parallel()
	r := newIndexRepo(t, "sha1")
	r.fill()
	r.git("reset", "-q", "--hard")
	r.git("sparse-checkout", "set", "--cone", "--sparse-index", "dir1")
	x, err := ReadIndex(filepath.Join(r.dir, ".git/index"), "sha1")
	if err != nil {
		t.Fatal(err)
	}
	i, ok := x.Search("dir2/")
	if !x.Sparse || !ok || x.At(i).Mode != 0o040000 || !x.At(i).SkipWorktree {
		t.Errorf("sparse %v, entry %v", x.Sparse, ok)
	}
	if _, ok := x.SearchDir("dir2"); !ok {
		t.Error("SearchDir passes over a sparse directory")
	}
}

// FuzzIndex: bytes that are no index give an error and nothing else; what is
// accepted can be walked, and written to bytes that give the same entries.
func FuzzIndex(f *testing.F) {
	for _, format := range []string{"sha1", "sha256"} {
		r := newIndexRepo(f, format)
		r.fill()
		for _, v := range []string{"--index-version=3", "--index-version=4", "--split-index"} {
			r.git("update-index", v)
			data, err := os.ReadFile(filepath.Join(r.dir, ".git/index"))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, format == "sha256")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, wide bool) {
		size := 20
		if wide {
			size = 32
		}
		x, err := parseIndex(string(data), size)
		if err != nil {
			return
		}
		if x.Split {
			if x, err = x.joinShared(filepath.Join(t.TempDir(), "index")); err != nil {
				return
			}
		}
		var b bytes.Buffer
		if err := x.encode(&b, "", func(i int) (IndexStat, bool) { return x.At(i).Stat, false }); err != nil {
			t.Fatal(err)
		}
		y, err := parseIndex(b.String(), size)
		if err != nil {
			t.Fatal(err)
		}
		if list(x) != list(y) {
			t.Error("entries changed by writing")
		}
		for i, e := range x.Entries() {
			if at, ok := x.Search(e.Path); !ok || at > i || x.Path(at) != e.Path {
				t.Errorf("Search(%q) = %d, %v", e.Path, at, ok)
			}
		}
	})
}

// FuzzEwah: every bitmap ends in an error or in positions below the limit.
func FuzzEwah(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x40\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, _, err := ewah(string(data), 1000)
		for _, pos := range set {
			if err == nil && pos >= 1000 {
				t.Errorf("position %d", pos)
			}
		}
	})
}
