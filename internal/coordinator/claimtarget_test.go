package coordinator

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
)

func TestSplitRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		arg, name  string
		start, end int
		ok         bool
	}{
		{"a.go", "a.go", 0, 0, true},
		{"a.go:10-20", "a.go", 10, 20, true},
		{"a.go:7", "a.go", 7, 7, true},
		{"a.go:7-7", "a.go", 7, 7, true},
		{"a:1-2:", "a:1-2", 0, 0, true},
		{"a:1-2:3-4", "a:1-2", 3, 4, true},
		{"a:b", "a:b", 0, 0, true},
		{"a:1-2x", "a:1-2x", 0, 0, true},
		{"-x:1-2", "-x", 1, 2, true},
		{"a\nb:1-2", "a\nb", 1, 2, true},
		{"\xff:1-2", "\xff", 1, 2, true},
		{"a:20-10", "", 0, 0, false},
		{"a:0-3", "", 0, 0, false},
		{"a:0", "", 0, 0, false},
		{"a:-3", "", 0, 0, false},
		{"a:3-", "", 0, 0, false},
		{"a:1-2-3", "", 0, 0, false},
		{"a:-", "", 0, 0, false},
		{"a:1-99999999999", "", 0, 0, false},
		{"a:1-99999999999999999999999999", "", 0, 0, false},
		{"a:1-2147483646", "a", 1, maxLine, true},
	} {
		name, lines, err := SplitRange(tt.arg)
		if (err == nil) != tt.ok || tt.ok && (name != tt.name || lines != Lines{tt.start, tt.end}) {
			t.Errorf("%q: %q %v %v", tt.arg, name, lines, err)
		}
		if err != nil && !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v is no usage error", tt.arg, err)
		}
	}
}

func FuzzSplitRange(f *testing.F) {
	for _, s := range []string{"a", "a:1-2", "a:1-2:", ":", "a:9", "\xff\n:3-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		name, lines, err := SplitRange(arg)
		if err != nil {
			return
		}
		target, err := NewTarget(KindFile, name, lines)
		if err != nil {
			return
		}
		again, lines2, err := SplitRange(target.String()) // what is printed can be typed
		if err != nil || again != name || lines2 != lines {
			t.Fatalf("%q → %q → %q %v %v", arg, target.String(), again, lines2, err)
		}
		data, err := json.Marshal(target)
		var back Target
		if err != nil || json.Unmarshal(data, &back) != nil || back != target {
			t.Fatalf("%s is not %v: %v", data, target, err)
		}
	})
}

func target(t *testing.T, text string) Target {
	t.Helper()
	name, lines, err := SplitRange(text)
	if err != nil {
		t.Fatal(err)
	}
	kind := KindFile
	switch {
	case text == ".", strings.HasSuffix(name, "/"):
		kind, name = KindDir, path.Clean(name)
	case IsPattern(name):
		kind = KindGlob
	}
	out, err := NewTarget(kind, name, lines)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a:10-20", "a:50-60", false},
		{"a:10-20", "a:15-25", true},
		{"a:10-20", "a:20-25", true},
		{"a:10-20", "a:21-25", false},
		{"a:10-20", "b:10-20", false},
		{"a", "a:10-20", true},
		{"a", "a", true},
		{"src/a", "src/", true},
		{"src/a:1-2", "src/", true},
		{"srcs/a", "src/", false},
		{"src", "src/", true},
		{"src/", "src/deep/", true},
		{"src/", "lib/", false},
		{".", "x/y/z", true},
		{".", "x/", true},
		{"*.go", "a.go", true},
		{"*.go", "a.go:3-4", true},
		{"*.go", "x/a.go", false},
		{"**/*.go", "x/y/a.go", true},
		{"**/*.go", "a.go", true},
		{"src/**", "src/", true},
		{"src/**", "src", true},
		{"*/a.go", "src/", true},
		{"*.go", "src/", false},
		{"*.go", "src.go/", true},
		{"x/*.go", "src/", false},
		{"**/*_test.go", "src/", true},
		{"*.go", "*.md", false},
		{"a*", "*b", true},
		{"a*c", "ab*", true},
		{"[a-m]*", "[n-z]*", false},
		{"[a-m]*", "[^a-m]*", false},
		{"[!a]x", "[!b]x", true},
		{"{a,b}.go", "b.go", true},
		{"{a,b}.go", "c.go", false},
		{"{src,lib}/**", "lib/", true},
		{"{src,lib}/**", "doc/", false},
		{"src/**/x", "src/x", true},
		{"src/**/x", "**/y", false},
		{"**", "deep/er", true},
		{`a\*`, "ab", false},
		{"?", "\xff", true},
		{"?", "ä", true},
		{"??", "ä", false},
	} {
		a, b := target(t, tt.a), target(t, tt.b)
		if got := a.Overlaps(b); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
		if got := b.Overlaps(a); got != tt.want {
			t.Errorf("%s and %s: %v", tt.b, tt.a, got)
		}
	}
}

// TestOverlapsFindsCommonPaths compares patterns with all short paths: where one
// is matched by both, they overlap.
func TestOverlapsFindsCommonPaths(t *testing.T) {
	t.Parallel()
	var paths []string
	var grow func(prefix string, depth int)
	names := []string{"a", "b", "ab", "ba", "aab"}
	grow = func(prefix string, depth int) {
		for _, n := range names {
			paths = append(paths, prefix+n)
			if depth > 1 {
				grow(prefix+n+"/", depth-1)
			}
		}
	}
	grow("", 3)
	pieces := []string{"a", "b", "*", "?", "[ab]", "[^a]", "**", "a*", "*b", "{a,ab}", "?b"}
	r := rand.New(rand.NewPCG(1, 2))
	pattern := func() string {
		var parts []string
		for range 1 + r.IntN(3) {
			parts = append(parts, pieces[r.IntN(len(pieces))])
		}
		return strings.Join(parts, "/")
	}
	for range 3000 {
		p, q := pattern(), pattern()
		common := ""
		for _, name := range paths {
			x, _ := doublestar.Match(p, name)
			y, _ := doublestar.Match(q, name)
			if x && y {
				common = name
				break
			}
		}
		if common != "" && !(Target{KindGlob, p, Lines{}}).Overlaps(Target{KindGlob, q, Lines{}}) {
			t.Errorf("%s and %s both match %s", p, q, common)
		}
		name := paths[r.IntN(len(paths))]
		match, _ := doublestar.Match(p, name)
		if got := (Target{KindGlob, p, Lines{}}).Overlaps(Target{KindFile, name, Lines{}}); got != match {
			t.Errorf("%s and the file %s: %v, doublestar says %v", p, name, got, match)
		}
	}
}

func TestNewTargetRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []Target{
		{KindFile, "", Lines{}}, {KindFile, "../x", Lines{}}, {KindFile, "/x", Lines{}}, {KindFile, "a//b", Lines{}}, {KindFile, "a\x00b", Lines{}},
		{KindDir, "src", Lines{1, 2}}, {KindGlob, "*.go", Lines{1, 2}}, {KindGlob, "[", Lines{}}, {KindGlob, "../*", Lines{}}, {"", "x", Lines{}},
		{KindFile, "a", Lines{5, 4}}, {KindFile, "a", Lines{0, 4}}, {KindFile, "a", Lines{1, maxLine + 1}},
		{KindGlob, strings.Repeat("{a,b}", 7), Lines{}},
	} {
		if _, err := NewTarget(bad.Kind, bad.Path, bad.Lines); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
