package merge

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

func TestParseHunks(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]HunkRange{"1": {1, 1}, "3-3": {3, 3}, "2-10": {2, 10}, "007": {7, 7}} {
		if got, err := ParseHunks(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "1-", "-", "3-2", "a", "1-b", "1,2", " 1", "+1", "1.0", "99999999999", "1-2-3"} {
		if _, err := ParseHunks(s); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

const samplePatch = `diff --git a/a b/a
index 1..2 100644
--- a/a
+++ b/a
@@ -1,2 +1,3 @@
 one
--- not a header
+++ nor this
+@@ -1 +1 @@
@@ -9 +10 @@ func f() {
-x
\ No newline at end of file
+diff --git a/y b/y
\ No newline at end of file
diff --git a/b.bin b/b.bin
index 1..2 100644
GIT binary patch
literal 3
KcmZQzWMBXQ00031

literal 1
IcmZPo000310RR91

diff --git a/m b/m
old mode 100644
new mode 100755
diff --git a/r b/s
similarity index 100%
rename from r
rename to s
diff --git a/e b/e
new file mode 100644
index 0..e
diff --git a/z b/z
new file mode 100644
--- /dev/null
+++ b/z
@@ -0,0 +1 @@
+z
diff --git a/last b/last
deleted file mode 100644
index e..0
`

func TestNumbering(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 7, 1 << 20} {
		var out bytes.Buffer
		w := NewNumberWriter(&out)
		for rest := samplePatch; rest != ""; {
			n := min(chunk, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := samplePatch
		for _, r := range [][2]string{
			{"@@ -1,2 +1,3 @@\n one", "@@ -1,2 +1,3 @@ [1]\n one"}, {"+10 @@ func", "+10 @@ [2] func"}, {"GIT binary", "[3] the whole change\nGIT binary"},
			{"diff --git a/r ", "[4] the whole change\ndiff --git a/r "}, {"diff --git a/e ", "[5] the whole change\ndiff --git a/e "},
			{"diff --git a/z ", "[6] the whole change\ndiff --git a/z "}, {"+1 @@\n+z", "+1 @@ [7]\n+z"}, {"index e..0\n", "index e..0\n[8] the whole change\n"},
		} {
			if strings.Count(want, r[0]) != 1 {
				t.Fatalf("%q is in the patch %d times", r[0], strings.Count(want, r[0]))
			}
			want = strings.Replace(want, r[0], r[1], 1)
		}
		if out.String() != want {
			t.Errorf("chunks of %d:\n%s", chunk, out.String())
		}
	}
	files, err := splitPatch([]byte(samplePatch))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for i := range files {
		got = append(got, len(files[i].hunks))
	}
	if fmt.Sprint(got) != "[2 0 0 0 0 1 0]" {
		t.Errorf("hunks: %v", got)
	}
}

func TestSelectHunks(t *testing.T) {
	t.Parallel()
	sel, err := selectHunks([]HunkRange{{2, 3}, {1, 1}}, 3)
	if err != nil || len(sel) != 3 {
		t.Errorf("%v, %v", sel, err)
	}
	if _, err := selectHunks([]HunkRange{{1, 4}}, 3); !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), "no hunk 4") {
		t.Errorf("%v", err)
	}
	if _, err := selectHunks([]HunkRange{{1, 1}}, 0); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("%v", err)
	}
}

// TestPatchFileAgainstGit makes random edits and brings in random hunks of them,
// with ours and with git apply.
func TestPatchFileAgainstGit(t *testing.T) {
	t.Parallel()
	f := gittest.Plain(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	ends := []string{"\n", "\n", "\n", "\r\n", "\r\r\n"}
	for round := range 60 {
		var old, edited strings.Builder
		for i := range 5 + rnd.IntN(120) {
			line := fmt.Sprintf("line %d%s", i%17, ends[rnd.IntN(len(ends))])
			old.WriteString(line)
			switch rnd.IntN(14) {
			case 0:
			case 1:
				edited.WriteString("changed " + line)
			case 2:
				edited.WriteString(line + "added\n-- x\n")
			default:
				edited.WriteString(line)
			}
		}
		base, final := old.String(), edited.String()
		if round%3 == 0 {
			base = strings.TrimRight(base, "\r\n")
		}
		if round%4 == 0 {
			final = strings.TrimRight(final, "\r\n")
		}
		testHunks(t, f, rnd, base, final)
	}
}

func testHunks(t *testing.T, f *gittest.Fixture, rnd *rand.Rand, base, final string) {
	t.Helper()
	f.Write("old/file", base)
	f.Write("new/file", final)
	patch, _ := f.Try(f.Dir, "diff", "--no-index", "--no-prefix", "old/file", "new/file")
	if patch == "" {
		return
	}
	files, err := splitPatch([]byte(patch))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var which []int
	part := "--- a/file\n+++ b/file\n"
	for i, h := range files[0].hunks {
		if rnd.IntN(2) == 0 {
			which, part = append(which, i), part+string(h)
		}
	}
	if len(which) == 0 {
		return
	}
	in, err := os.Open(f.Path("old/file"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var got bytes.Buffer
	if _, _, err := patchFile(&got, in, &files[0], which); err != nil {
		t.Fatalf("%v\n%s", err, patch)
	}
	f.Write("git/file", base)
	f.Write("part.patch", part)
	if out, err := f.Try(filepath.Join(f.Dir, "git"), "apply", "--unidiff-zero", "../part.patch"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if want := f.Read("git/file"); got.String() != want {
		t.Errorf("hunks %v of\n%s\ngive\n%q, git has\n%q", which, patch, got.String(), want)
	}
}

// FuzzHunks holds that numbering changes nothing else: without the numbers the
// patch is the same, and each hunk has one.
func FuzzHunks(f *testing.F) {
	f.Add([]byte(samplePatch))
	f.Add([]byte("diff --git a/a b/a\n@@ -1 +1 @@\n"))
	f.Add([]byte("@@ -1 +1 @@"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		var out bytes.Buffer
		w := NewNumberWriter(&out)
		if _, err := w.Write(patch); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		for n := 1; n <= w.n; n++ {
			mark := fmt.Sprintf(" [%d]", n)
			line := fmt.Sprintf("[%d] the whole change\n", n)
			before := got
			if got = strings.Replace(got, mark, "", 1); got == before {
				got = strings.Replace(got, line, "", 1)
			}
			if got == before {
				t.Fatalf("hunk %d has no number", n)
			}
		}
		if bytes.Contains(patch, []byte(" [")) || bytes.Contains(patch, []byte("the whole change")) {
			return // the marks above may have been the patch's own
		}
		want := string(patch)
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got != want {
			t.Errorf("%q became %q", want, out.String())
		}
		files, err := splitPatch(patch)
		if err != nil || bytes.Contains(patch, []byte("GIT binary patch")) { // no git puts hunks behind it
			return
		}
		total := 0
		for i := range files {
			total += files[i].count()
		}
		if total != w.n {
			t.Errorf("%d hunks are numbered, %d counted: %q", w.n, total, patch)
		}
	})
}
