package superqode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitecture compares the picture in docs/architecture.md with the table of
// floors.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]int{}
	floor := regexp.MustCompile(`^floor (\d)  (.*)`)
	for l := range strings.Lines(string(data)) {
		m := floor.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		names, _, _ := strings.Cut(m[2], "   ") // what a package is for stands behind it
		for name := range strings.SplitSeq(names, ", ") {
			var n int
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				t.Fatal(err)
			}
			if name == "superqode" {
				name = ""
			}
			if _, ok := drawn[name]; ok {
				t.Errorf("docs/architecture.md shows %q twice", name)
			}
			drawn[name] = n
		}
	}
	for name, n := range floors {
		if got, ok := drawn[name]; !ok || got != n/10 {
			t.Errorf("docs/architecture.md shows %q on floor %d (%t), and it stands on %d", name, got, ok, n/10)
		}
		delete(drawn, name)
	}
	for name := range drawn {
		t.Errorf("docs/architecture.md shows %q, which is no package", name)
	}
}

// TestPages checks that every link in README.md and docs/ leads to a file that
// exists and, where it names a heading, to a heading of that file.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)]*))?\)|src="([^":]+)"`)
	for _, page := range append(pages, "README.md") {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			target := page
			if name := m[1] + m[3]; name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
			} else if m[2] != "" && !slices.Contains(anchors(readPage(t, target)), m[2]) {
				t.Errorf("%s links to %s#%s, and that page has no such heading", page, target, m[2])
			}
		}
	}
}

// TestPathsOfThePages checks that every file and package of the source tree that
// docs/architecture.md names in code exists.
func TestPathsOfThePages(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/architecture.md")
	for _, m := range regexp.MustCompile("`((?:cmd|internal|guard|hooks|session|revert|worktree|artifacts)(?:/[\\w.-]+)+)`").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("docs/architecture.md names %s, which does not exist", m[1])
		}
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// anchors returns the names by which links reach a page's headings, made as
// GitHub makes them.
func anchors(page string) []string {
	var names []string
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}
