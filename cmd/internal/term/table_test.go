package term

import (
	"slices"
	"testing"
)

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	if got, want := cutLeft("/home/me/.superqode/qe/abc", 8), "…/qe/abc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := cutLeft("short", 0); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestCutting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s           string
		room        int
		left, right string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 4, "…def", "abc…"},
		{"日本語", 6, "日本語", "日本語"},
		{"日本語", 5, "…本語", "日本…"},
		{"日本語", 4, "…語", "日… "},
		{"ab", 4, "ab", "ab  "},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301", "e\u0301e\u0301"},
	} {
		if got := cutLeft(tt.s, tt.room); displayWidth(got) > tt.room || got != tt.left && displayWidth(tt.left) == displayWidth(got) {
			t.Errorf("cutLeft(%q, %d) is %q, want %q", tt.s, tt.room, got, tt.left)
		}
		if got := CutRight(tt.s, tt.room); displayWidth(got) != tt.room || got != tt.right {
			t.Errorf("cutRight(%q, %d) is %q, want %q", tt.s, tt.room, got, tt.right)
		}
	}
}

// TestTablesFitTheTerminal holds that no table is wider than 80 columns, whatever
// is in it.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width []int
		room  int
	}{
		{[]int{25, 12, 14, 3, 7, 90}, 12}, // the widest that workspace list has
		{[]int{25, 8, 4, 3, 7, 20}, 23},
		{[]int{8, 5, 7, 60, 8, 90}, 12},
		{[]int{8, 5, 7, 60, 8, 4}, 4},
		{[]int{200, 1}, 6},
		{[]int{90}, 80},
	} {
		width := slices.Clone(tt.width)
		room := fit(width, make([]bool, len(width)), 80, minLast)
		sum := room
		for _, w := range width[:len(width)-1] {
			sum += w + 2
		}
		if sum > 80 && room > minCell || room < min(tt.room, tt.width[len(tt.width)-1]) {
			t.Errorf("%v becomes %v with %d for the last: %d columns", tt.width, width, room, sum)
		}
	}
}

// TestTitlesKeepTheirBeginning holds that a text is cut where it ends, with room
// for more than a word of it.
func TestTitlesKeepTheirBeginning(t *testing.T) {
	t.Parallel()
	if got := cutEnd("The total is doubled", 10); got != "The total…" {
		t.Errorf("%q", got)
	}
	if got := cutEnd("as it is", 0); got != "as it is" {
		t.Errorf("%q", got)
	}
	width := []int{12, 8, 4, 8, 60, 90}
	if room := fit(width, make([]bool, len(width)), 80, minText); room < minText {
		t.Errorf("%d columns for a title", room)
	}
	width = []int{11, 8, 4, 11, 14, 90}
	header := []string{"ID", "SEVERITY", "PRIO", "FINGERPRINT", "LOCATION", "TITLE"}
	if room := fit(width, typed(header), 60, minText); width[0] != 11 || width[3] != 11 || room < 10 {
		t.Errorf("%v and %d: what people type is cut", width, room)
	}
}
