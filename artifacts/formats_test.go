package artifacts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
)

// TestFormatsResult compares the session result in docs/formats.md with what the
// program prints: the same keys, nothing missing and nothing more.
func TestFormatsResult(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "## The session result")
	_, block, _ := strings.Cut(after, "```\n")
	block, _, _ = strings.Cut(block, "```")
	var shown any
	if err := json.Unmarshal([]byte(block), &shown); err != nil {
		t.Fatalf("the example is not JSON: %v", err)
	}
	printed, err := json.Marshal(Result{
		Changes:   []superqode.Change{{Type: superqode.ChangeModified}},
		Guard:     Guard{Blocked: []Blocked{{}}, KernelRefusals: []KernelRefusal{{}}},
		Artifacts: []Ref{{}}, Setup: []SetupStep{{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var real any
	if err := json.Unmarshal(printed, &real); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(keys("", real), keys("", shown)); d != "" {
		t.Errorf("docs/formats.md shows other keys (+) than the program prints (-):\n%s", d)
	}
}

// keys returns the path of every key in a decoded JSON document, sorted.
func keys(at string, v any) []string {
	var paths []string
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			paths = append(append(paths, at+"."+k), keys(at+"."+k, inner)...)
		}
	case []any:
		for _, inner := range v {
			paths = append(paths, keys(at+"[]", inner)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
