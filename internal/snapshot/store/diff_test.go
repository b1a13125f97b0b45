package store

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

func testStore(tb testing.TB, objects string, f snapshot.Format) *Store {
	tb.Helper()
	g, err := git.Find(tb.Context(), snaptest.GitEnv(tb.TempDir()))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := Open(tb.Context(), g, filepath.Join(tb.TempDir(), "project/store.git"), objects, f)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString("line " + strconv.Itoa(i) + " of a text that is long enough\n")
	}
	return b.String()
}

const binary1, binary2 = "\x00\x01\x02binary\xff\xfe", "\x00\x01\x03binary\xff\xfe and more\x00"

type patchCase struct {
	name        string
	base, final snaptest.Spec
}

func patchCases() []patchCase {
	odd := []string{"new\nline", "tab\there", `quo"te`, "back\\slash", "-dash", "--", "sp ace", " lead", "trail ", "latin\xe9", "\xff\xfe", "ünï", "st*r", "[x]", "a => b", "{x => y}", ":(top)x", "a/ b/c", "/dev"[1:] + "/null", "#x", "~", "e\x01\x7f"}
	oddBase, oddFinal, oddMoved := snaptest.Spec{}, snaptest.Spec{}, snaptest.Spec{}
	for i, n := range odd {
		oddBase["odd/"+n] = lines(i*100, i*100+20)
		oddFinal["odd/"+n] = lines(i*100, i*100+21)
		oddMoved["mov ed/"+n+"~"] = lines(i*100, i*100+19)
	}
	many1, many2 := snaptest.Spec{}, snaptest.Spec{}
	for i := range 300 {
		n := strconv.Itoa(i)
		many1["m/"+n] = lines(i, i+5)
		many2["m/"+n] = lines(i, i+5+i%3)
	}
	return []patchCase{
		{"nothing", snaptest.Spec{"a": "1\n"}, snaptest.Spec{"a": "1\n"}},
		{"from nothing", snaptest.Spec{}, snaptest.Spec{"a": "1\n", "b/c": "2\n"}},
		{"to nothing", snaptest.Spec{"a": "1\n", "b/c": "2\n"}, snaptest.Spec{}},
		{"text", snaptest.Spec{"a": lines(0, 100)}, snaptest.Spec{"a": lines(0, 50) + "new\n" + lines(50, 100)}},
		{"crlf", snaptest.Spec{"a": "1\r\n2\r\n3\r\n"}, snaptest.Spec{"a": "1\r\n2b\r\n3\r\n4\r\n"}},
		{"crlf to lf", snaptest.Spec{"a": "1\r\n2\r\n"}, snaptest.Spec{"a": "1\n2\n"}},
		{"lone cr", snaptest.Spec{"a": "1\r2\r3\n"}, snaptest.Spec{"a": "1\r2\r4\r\r\n"}},
		{"latin-1", snaptest.Spec{"a": "caf\xe9\n"}, snaptest.Spec{"a": "caf\xe9s\n\xff\n"}},
		{"utf-16", snaptest.Spec{"a": "\xff\xfea\x00\n\x00"}, snaptest.Spec{"a": "\xff\xfeb\x00\n\x00"}},
		{"no newline before", snaptest.Spec{"a": "1\n2"}, snaptest.Spec{"a": "1\n2\n"}},
		{"no newline after", snaptest.Spec{"a": "1\n2\n"}, snaptest.Spec{"a": "1\n2"}},
		{"no newline at all", snaptest.Spec{"a": "1\n2"}, snaptest.Spec{"a": "0\n1\n3"}},
		{"trailing blanks", snaptest.Spec{"a": "x\n\n"}, snaptest.Spec{"a": "x \t\n\n\n \n"}},
		{"binary", snaptest.Spec{"a": binary1}, snaptest.Spec{"a": binary2}},
		{"binary made and deleted", snaptest.Spec{"a": binary1}, snaptest.Spec{"b": strings.Repeat(binary2, 1000)}},
		{"text to binary", snaptest.Spec{"a": lines(0, 9)}, snaptest.Spec{"a": binary1}},
		{"mode", snaptest.Spec{"a": "1\n", "b*": "2\n"}, snaptest.Spec{"a*": "1\n", "b": "2\n"}},
		{"mode and text", snaptest.Spec{"a": "1\n"}, snaptest.Spec{"a*": "2\n"}},
		{"mode of a binary", snaptest.Spec{"a": binary1}, snaptest.Spec{"a*": binary1}},
		{"rename", snaptest.Spec{"a": lines(0, 9)}, snaptest.Spec{"dir/b": lines(0, 9)}},
		{"rename and edit", snaptest.Spec{"a": lines(0, 30)}, snaptest.Spec{"b*": lines(0, 31)}},
		{"rename of a binary and edit", snaptest.Spec{"a": strings.Repeat(binary1, 50)}, snaptest.Spec{"b": strings.Repeat(binary1, 50) + "x"}},
		{"rename by case", snaptest.Spec{"Readme": lines(0, 9)}, snaptest.Spec{"README": lines(0, 9)}},
		{"rename by case and edit", snaptest.Spec{"Readme": lines(0, 30)}, snaptest.Spec{"README": lines(0, 31)}},
		{"swap", snaptest.Spec{"a": lines(0, 30), "b": lines(50, 80)}, snaptest.Spec{"b": lines(0, 30), "a": lines(50, 80)}},
		{"rename onto a deleted", snaptest.Spec{"a": lines(0, 30), "b": "other\n"}, snaptest.Spec{"b": lines(0, 30)}},
		{"copy", snaptest.Spec{"a": lines(0, 30)}, snaptest.Spec{"a": lines(0, 30), "b": lines(0, 30)}},
		{"two from one", snaptest.Spec{"a": lines(0, 30)}, snaptest.Spec{"b": lines(0, 30), "c": lines(0, 31)}},
		{"empty made", snaptest.Spec{"a": "1\n"}, snaptest.Spec{"a": "1\n", "e": "", "d/e*": ""}},
		{"empty deleted", snaptest.Spec{"a": "1\n", "e": "", "d/e": ""}, snaptest.Spec{"a": "1\n"}},
		{"emptied and filled", snaptest.Spec{"a": "1\n", "b": ""}, snaptest.Spec{"a": "", "b": "1\n"}},
		{"empty mode", snaptest.Spec{"a": ""}, snaptest.Spec{"a*": ""}},
		{"link made, changed, deleted", snaptest.Spec{"a": "-> x", "b": "-> y"}, snaptest.Spec{"a": "-> x/z", "c": "-> /abs\nolute"}},
		{"file to link", snaptest.Spec{"a": "x"}, snaptest.Spec{"a": "-> x"}},
		{"link to file", snaptest.Spec{"a": "-> x"}, snaptest.Spec{"a": "x\n"}},
		{"file to folder", snaptest.Spec{"a": lines(0, 9)}, snaptest.Spec{"a/b": "2\n", "a/c/d": "3\n"}},
		{"file into a folder of its name", snaptest.Spec{"a": lines(0, 9)}, snaptest.Spec{"a/a": lines(0, 9)}},
		{"folder to file", snaptest.Spec{"a/b": "2\n", "a/c/d": "3\n"}, snaptest.Spec{"a": "1\n"}},
		{"folder to the file in it", snaptest.Spec{"a/a": lines(0, 9)}, snaptest.Spec{"a": lines(0, 9)}},
		{"folder to link", snaptest.Spec{"a/b": "2\n", "z/b": "2\n"}, snaptest.Spec{"a": "-> z", "z/b": "2\n"}},
		{"link to folder", snaptest.Spec{"a": "-> z", "z/b": "2\n"}, snaptest.Spec{"a/b": "2\n", "z/b": "3\n"}},
		{"file and folder swapped", snaptest.Spec{"a": lines(0, 30), "b/x": lines(40, 70)}, snaptest.Spec{"b": lines(0, 30), "a/x": lines(40, 70)}},
		{"sorting", snaptest.Spec{"a": "1\n", "a.b": "2\n", "a-b/c": "3\n"}, snaptest.Spec{"a/b": "1\n", "a.b": "2b\n", "a-b": "3\n", "a0": "4\n"}},
		{"odd names changed", oddBase, oddFinal},
		{"odd names made", snaptest.Spec{}, oddFinal},
		{"odd names deleted", oddFinal, snaptest.Spec{}},
		{"odd names moved", oddBase, oddMoved},
		{"looks like a patch", snaptest.Spec{"a": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n"}, snaptest.Spec{"a": "--- a/x\n+++ b/y\ndiff --git a/a b/a\n@@ -1 +1 @@\n-- \n2.39\n"}},
		{"attributes ask otherwise", snaptest.Spec{".gitattributes": "* -diff -text binary\n*.c filter=x diff=y\n", "a.c": "1\n"}, snaptest.Spec{".gitattributes": "* binary\n*.c diff=y -diff\n", "a.c": "2\n", "b.c": "n\r\n"}},
		{"attributes and crlf", snaptest.Spec{".gitattributes": "* text=auto\n*.bat text eol=crlf\n", "a.bat": "1\r\n2\r\n", "a": "1\r\n", "b": "1\n"}, snaptest.Spec{".gitattributes": "* text=auto\n*.bat text eol=crlf\n", "a.bat": "1\r\n3\r\n", "a": "2\r\n", "b": "2\n", "c.bat": "new\r\n"}},
		{"git's own names", snaptest.Spec{"a": "1\n", "x/.git/config": "1\n"}, snaptest.Spec{"a": "2\n", "x/.git/config": "2\n", ".GIT/y": "1\n", "git~1": "x", ".gitmodules": "-> x", ".gitignore": "*\n"}},
		{"empty folders", snaptest.Spec{"d": "DIR", "a": "1\n"}, snaptest.Spec{"a": "2\n", "e": "DIR"}},
		{"no text but long", snaptest.Spec{"a": strings.Repeat("x", 100_000)}, snaptest.Spec{"a": strings.Repeat("x", 100_001)}},
		{"many", many1, many2},
	}
}

// gitView keeps what git's trees hold of a snapshot, for comparisons.
func gitView(s *snapshot.Snapshot) map[superqode.RelPath]string {
	m := map[superqode.RelPath]string{}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.InTree() {
			m[e.Path] = gitMode(e) + " " + e.ID.String()
		}
	}
	return m
}

func sameView(t *testing.T, want, got map[superqode.RelPath]string) {
	t.Helper()
	for p, w := range want {
		if got[p] != w {
			t.Errorf("%q is %q, want %q", p, got[p], w)
		}
	}
	for p, g := range got {
		if want[p] == "" {
			t.Errorf("%q is %q, want nothing", p, g)
		}
	}
}

// TestPatch: real git apply turns a copy of the base into the final state, byte
// for byte, inside a repository and outside one, and back with -R; and Describe
// says what git diff --numstat -M says.
func TestPatch(t *testing.T) {
	t.Parallel()
	for _, c := range patchCases() {
		for _, f := range []snapshot.Format{snapshot.SHA1, snapshot.SHA256} {
			if f == snapshot.SHA256 && len(c.base) > 50 {
				continue
			}
			t.Run(c.name+" "+f.String(), func(t *testing.T) {
				t.Parallel()
				testPatch(t, c, f)
			})
		}
	}
}

func testPatch(t *testing.T, c patchCase, f snapshot.Format) {
	dirs := map[string]string{}
	for _, n := range []string{"base", "final", "outside", "inside"} {
		dirs[n] = t.TempDir()
		if n == "final" {
			c.final.Write(t, dirs[n])
		} else {
			c.base.Write(t, dirs[n])
		}
	}
	base, final := rehash(t, snaptest.Walk(t, dirs["base"], true), f), rehash(t, snaptest.Walk(t, dirs["final"], true), f)
	s := testStore(t, "", f)
	ids := map[string]string{}
	for name, snap := range map[string]*snapshot.Snapshot{"base": base, "final": final} {
		if err := s.WriteBlobs(t.Context(), snap.Root, snap.Entries); err != nil {
			t.Fatal(err)
		}
		id, err := s.Commit(t.Context(), "refs/superqode/qe-1/"+name, snap, CommitOptions{Message: name, When: time.Unix(1e9, 0)})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = id
	}
	var patch bytes.Buffer
	if err := s.Diff(t.Context(), DiffOptions{Base: ids["base"], Final: ids["final"]}, &patch); err != nil {
		t.Fatal(err)
	}
	snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "fsck", "--strict", "--no-dangling")
	snaptest.Git(t, dirs["inside"], "init", "-q", "--object-format="+f.String())
	for _, n := range []string{"outside", "inside"} {
		if patch.Len() == 0 || n == "outside" && f == snapshot.SHA256 {
			continue // outside a repository git apply takes binary patches for SHA-1
		}
		apply := func(how ...string) *snapshot.Snapshot {
			cmd := exec.CommandContext(t.Context(), "git", append([]string{"apply"}, how...)...)
			cmd.Dir, cmd.Env, cmd.Stdin = dirs[n], append(snaptest.GitEnv(dirs[n]), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dirs[n])), bytes.NewReader(patch.Bytes())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git apply %v: %v\n%s\n%s", how, err, out, patch.Bytes())
			}
			return rehash(t, snaptest.Walk(t, dirs[n], true), f)
		}
		sameView(t, gitView(final), gitView(apply()))
		sameView(t, gitView(base), gitView(apply("-R")))
	}
	testDescribe(t, s, base, final)
}

// rehash gives a snapshot ids of another format.
func rehash(tb testing.TB, s *snapshot.Snapshot, f snapshot.Format) *snapshot.Snapshot {
	s.Format = f
	for i := range s.Entries {
		e := &s.Entries[i]
		switch e.Kind {
		case snapshot.File:
			b, err := os.ReadFile(e.Path.In(s.Root))
			if err != nil {
				tb.Fatal(err)
			}
			e.ID = f.HashBlob(b)
		case snapshot.Link:
			e.ID = f.HashBlob([]byte(e.Link))
		}
	}
	return s
}

func modeOf(e *snapshot.Entry) uint32 {
	if e == nil {
		return 0
	}
	return e.Mode()
}

// plainChanges compares two snapshots without looking for renames.
func plainChanges(t *testing.T, base, final *snapshot.Snapshot) (out []superqode.Change) {
	t.Helper()
	paths := map[superqode.RelPath]bool{}
	for _, s := range []*snapshot.Snapshot{base, final} {
		for i := range s.Entries {
			paths[s.Entries[i].Path] = true
		}
	}
	for p := range paths {
		a, b := base.Find(p), final.Find(p)
		path, err := superqode.ParseRelPath(string(p))
		if err != nil {
			t.Fatal(err)
		}
		c := superqode.Change{Path: path, LinesAdded: -1, LinesRemoved: -1, OldMode: modeOf(a), NewMode: modeOf(b)}
		switch {
		case a == nil && b.Kind == snapshot.Dir || b == nil && a.Kind == snapshot.Dir:
			continue
		case a == nil:
			c.Type = superqode.ChangeCreated
		case b == nil:
			c.Type = superqode.ChangeDeleted
		case a.Kind != b.Kind:
			c.Type = superqode.ChangeKind
		case a.ID != b.ID:
			c.Type = superqode.ChangeModified
		case a.Perm != b.Perm:
			c.Type = superqode.ChangeMode
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// testDescribe holds Describe against git itself on the whole trees, which the
// store has.
func testDescribe(t *testing.T, s *Store, base, final *snapshot.Snapshot) {
	t.Helper()
	got, err := s.Describe(t.Context(), base, final, plainChanges(t, base, final))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(s.Dir() + "/describe-*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
	trees := [2]string{}
	for i, snap := range []*snapshot.Snapshot{base, final} {
		root := buildTree(s.format, snap.Entries)
		trees[i] = root.id.String()
	}
	out := snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "diff", "--numstat", "-M", "-z", trees[0], trees[1])
	want := map[superqode.RelPath]string{}
	for f := strings.Split(out, "\x00"); len(f) > 1; {
		n := strings.SplitN(f[0], "\t", 3)
		if n[2] != "" {
			want[superqode.RelPath(n[2])] = n[0] + " " + n[1] + " "
			f = f[1:]
			continue
		}
		want[superqode.RelPath(f[2])] = n[0] + " " + n[1] + " " + f[1]
		f = f[3:]
	}
	have := map[superqode.RelPath]string{}
	for _, c := range got {
		if e, o := final.Find(c.Path), base.Find(c.Path); (e == nil || !e.InTree()) && (o == nil || !o.InTree()) {
			continue
		}
		line := strconv.Itoa(c.LinesAdded) + " " + strconv.Itoa(c.LinesRemoved) + " " + c.OldPath.String()
		if c.Binary {
			line = "- - " + c.OldPath.String()
		}
		have[c.Path] = line
	}
	sameView(t, want, have)
}

func TestDescribeKeepsWhatGitDoesNotSee(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for _, d := range []string{a, b} {
		snaptest.Spec{"perm": "1\n", "kind/x": "1\n", "gone": lines(0, 30), "both": "x\n"}.Write(t, d)
	}
	if err := os.Chmod(filepath.Join(b, "perm"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b, "both")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(b, "both"), 0o644); err != nil {
		t.Fatal(err)
	}
	snaptest.Write(t, b, "moved", lines(0, 30)+"more\n", 0o640)
	base, final := snaptest.Walk(t, a, true), snaptest.Walk(t, b, true)
	s := testStore(t, "", snapshot.SHA1)
	if err := s.WriteBlobs(t.Context(), a, base.Entries); err != nil {
		t.Fatal(err)
	}
	got, err := s.Describe(t.Context(), base, final, plainChanges(t, base, final))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, c := range got {
		have = append(have, strings.Join([]string{string(c.Type), c.OldPath.String(), c.Path.String(), superqode.FormatMode(c.OldMode), superqode.FormatMode(c.NewMode), strconv.Itoa(c.LinesAdded), strconv.Itoa(c.LinesRemoved)}, " "))
	}
	want := "type  both 100644 010644 0 1\nrenamed gone moved 100644 100640 1 0\nmode  perm 100644 100600 0 0"
	if s := strings.Join(have, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

// TestDescribeSameBigFiles: contents too big to be prepared in memory are told
// apart only after they are written, and a pack may hold each one once.
func TestDescribeSameBigFiles(t *testing.T) {
	t.Parallel()
	for same := range 12 { // the trees come to different numbers of objects, once to the announced one
		a, b := t.TempDir(), t.TempDir()
		big := strings.Repeat("a line\n", packSmall/7+1)
		for i := range same + 1 {
			snaptest.Write(t, b, fmt.Sprintf("d%d/e/big%d", i%3, i), big, 0o644)
		}
		snaptest.Write(t, b, "other", big+"another\n", 0o644)
		s := testStore(t, "", snapshot.SHA1)
		base, final := snaptest.Walk(t, a, true), snaptest.Walk(t, b, true)
		got, err := s.Describe(t.Context(), base, final, plainChanges(t, base, final))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			if want := strings.Count(big, "\n"); c.LinesAdded != want && c.Path.String() != "other" {
				t.Errorf("%s: %d lines, not %d", c.Path, c.LinesAdded, want)
			}
		}
		if len(got) != same+2 {
			t.Errorf("%d changes", len(got))
		}
	}
}

// TestDiffIgnoresTheUser: configuration and attributes that the user has for
// their own eyes do not change a patch.
func TestDiffIgnoresTheUser(t *testing.T) {
	t.Parallel()
	a, b, home := t.TempDir(), t.TempDir(), t.TempDir()
	snaptest.Spec{"f.txt": lines(0, 30), "d/g": "1\n", "?": "1\n"}.Write(t, a)
	snaptest.Spec{"f.txt": lines(0, 15) + "new\n" + lines(15, 30), "d/g": "2\n", "x": "-> y"}.Write(t, b)
	snaptest.Write(t, home, ".gitconfig", "[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n\trenames = false\n\texternal = false\n\tcontext = 0\n\talgorithm = patience\n[diff \"x\"]\n\ttextconv = tr a-z A-Z <\n\tcommand = false\n[color]\n\tui = always\n[core]\n\tquotePath = false\n\tattributesFile = "+home+"/attr\n", 0o644)
	snaptest.Write(t, home, "attr", "* binary diff=x\n", 0o644)
	snaptest.Write(t, home, ".config/git/attributes", "* -diff\n", 0o644)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_GLOBAL=" + home + "/.gitconfig", "GIT_EXTERNAL_DIFF=false", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=diff.noprefix", "GIT_CONFIG_VALUE_0=true"}
	var out [2]bytes.Buffer
	for i, e := range [][]string{snaptest.GitEnv(t.TempDir()), env} {
		g, err := git.Find(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), g, filepath.Join(t.TempDir(), "store.git"), "", snapshot.SHA1)
		if err != nil {
			t.Fatal(err)
		}
		for name, dir := range map[string]string{"base": a, "final": b} {
			snap := snaptest.Walk(t, dir, true)
			if err := s.WriteBlobs(t.Context(), dir, snap.Entries); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Commit(t.Context(), "refs/superqode/s/"+name, snap, CommitOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		ends := DiffOptions{Base: "refs/superqode/s/base", Final: "refs/superqode/s/final"}
		for _, o := range []DiffOptions{ends, {Base: ends.Base, Final: ends.Final, Stat: true}, {Base: ends.Base, Final: ends.Final, Context: 1, Color: true}, {Base: ends.Base, Final: ends.Final, Paths: []string{"?", "d"}}} {
			if err := s.Diff(t.Context(), o, &out[i]); err != nil {
				t.Fatal(err)
			}
			out[i].WriteString("=====\n")
		}
	}
	if out[0].String() != out[1].String() {
		t.Errorf("plain\n%s\nwith the user's settings\n%s", out[0].String(), out[1].String())
	}
	parts := strings.Split(out[0].String(), "=====\n")
	if !strings.Contains(parts[0], "\n line 12 of") || !strings.Contains(parts[1], "4 files changed") || !strings.Contains(parts[2], "\x1b[") ||
		strings.Contains(parts[3], "f.txt") || strings.Contains(parts[3], "b/x") || !strings.Contains(parts[3], "d/g") {
		t.Errorf("%s", out[0].String())
	}
	if err := testStore(t, "", snapshot.SHA1).Diff(t.Context(), DiffOptions{Base: "--output=/x", Final: "y"}, &out[0]); err == nil {
		t.Error("an option as a revision")
	}
}
