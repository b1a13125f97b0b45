package superqode_test

import (
	"fmt"
	"os"
	"regexp"
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
			drawn[name] = n
		}
	}
	for name, n := range floors {
		if got, ok := drawn[name]; !ok || got != n {
			t.Errorf("docs/architecture.md shows %q on floor %d (%t), and it stands on %d", name, got, ok, n)
		}
		delete(drawn, name)
	}
	for name := range drawn {
		t.Errorf("docs/architecture.md shows %q, which is no package", name)
	}
}

// TestLinksOfThePages looks whether what the pages link to is there.
func TestLinksOfThePages(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)|src="([^":]+)"`)
	for page, dir := range map[string]string{"README.md": "", "docs/guide.md": "docs/", "docs/architecture.md": "docs/", "docs/recovery.md": "docs/", "docs/reference.md": "docs/", "docs/guard.md": "docs/", "docs/setup.md": "docs/", "docs/exec.md": "docs/", "docs/agents.md": "docs/", "docs/claims.md": "docs/"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(dir + m[1] + m[3]); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1]+m[3])
			}
		}
	}
}
