package findings

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

func TestWithoutSuppression(t *testing.T) {
	t.Parallel()
	const one, two = "0123456789abcdef", "1123456789abcdef"
	for _, tt := range []struct{ name, in, want string }{
		{"ours", string(Suppression{Fingerprint: two, Reason: "r", Title: "a\nb"}.YAML()) + string(Suppression{Fingerprint: one, Reason: "r"}.YAML()), string(Suppression{Fingerprint: two, Reason: "r", Title: "a\nb"}.YAML())},
		{"comments", "# top\n- fingerprint: " + one + "\n  reason: |\n    two\n\n    lines\n\n# next\n- {fingerprint: " + two + ", reason: r}\n# end\n", "# top\n\n# next\n- {fingerprint: " + two + ", reason: r}\n# end\n"},
		{"last", "- {fingerprint: " + two + ", reason: r}\n- reason: r\n  fingerprint: " + one, "- {fingerprint: " + two + ", reason: r}\n"},
		{"a dash of its own", "-\n  fingerprint: " + one + "\n  reason: r\n-\n  fingerprint: " + two + "\n  reason: r\n", "-\n  fingerprint: " + two + "\n  reason: r\n"},
		{"twice", "- {fingerprint: " + one + ", reason: a}\n- {fingerprint: " + one + ", reason: b}\n", ""},
		{"indented", "  - fingerprint: " + one + "\n    reason: r\n  - fingerprint: " + two + "\n    reason: r\n", "  - fingerprint: " + two + "\n    reason: r\n"},
		{"not there", "- {fingerprint: " + two + ", reason: r}\n", "- {fingerprint: " + two + ", reason: r}\n"},
		{"carriage returns", "- fingerprint: " + one + "\r\n  reason: r\r\n- fingerprint: " + two + "\r\n  reason: r\r\n", "- fingerprint: " + two + "\r\n  reason: r\r\n"},
		{"nothing", "", ""},
	} {
		got, err := withoutSuppression([]byte(tt.in), one)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, got, tt.want)
		}
	}
	for _, bad := range []string{"[{fingerprint: " + one + ", reason: a}, {fingerprint: " + two + ", reason: b}]\n", "a: b\n"} {
		if _, err := withoutSuppression([]byte(bad), one); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// FuzzWithoutSuppression: an entry that was put in is taken out again, and every
// other entry holds.
func FuzzWithoutSuppression(f *testing.F) {
	f.Add("# a\n- fingerprint: 1123456789abcdef\n  reason: r\n", "why", "title")
	f.Add("", "two\nlines", ": # - ")
	f.Add("- {fingerprint: 1123456789abcdef, reason: r}", "x", "")
	f.Fuzz(func(t *testing.T, data, reason, title string) {
		const print = "0123456789abcdef"
		before, _, err := ParseSuppressions([]byte(data))
		if _, there := before[print]; err != nil || there || strings.TrimSpace(reason) == "" {
			t.Skip()
		}
		with, err := withSuppression([]byte(data), Suppression{Fingerprint: print, Reason: reason, Title: title})
		if err != nil {
			t.Skip() // not a list that can be added to
		}
		if got, _, err := ParseSuppressions(with); err != nil || len(got) > len(before)+1 {
			t.Fatalf("%q: %v %v", with, got, err)
		}
		without, err := withoutSuppression(with, print)
		if err != nil {
			if !errors.Is(err, superqode.ErrUsage) {
				t.Fatal(err)
			}
			return
		}
		if after, _, err := ParseSuppressions(without); err != nil || !maps.Equal(before, after) {
			t.Fatalf("%q: %v, before %v: %v", without, after, before, err)
		}
	})
}

func TestSuppressions(t *testing.T) {
	t.Parallel()
	f := artifacts.Finding{Severity: artifacts.SeverityHigh, Title: "evil: \"quoted\"\n- fingerprint: x", File: "a: b\u2028"}
	entry := Suppression{Fingerprint: f.Fingerprint(), Reason: "because: it\nis # so", Title: f.Title, File: f.File, Added: "2026-11-21"}
	data := append([]byte("# a comment\n"), entry.YAML()...)
	data = append(data, Suppression{Fingerprint: "0123456789abcdef", Reason: "old", Expires: "2026-01-01"}.YAML()...)
	entries, problems, err := ParseSuppressions(data)
	if err != nil || len(problems) > 0 || len(entries) != 2 || entries[f.Fingerprint()] != entry {
		t.Fatalf("%+v %v %v", entries, problems, err)
	}
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if got := entries.Mark([]artifacts.Finding{f}, now); got[0].Suppressed == nil || got[0].Suppressed.Reason != entry.Reason {
		t.Errorf("%+v", got)
	}
	if entries["0123456789abcdef"].Holds(now) || !entries["0123456789abcdef"].Holds(now.AddDate(-1, 0, 0)) {
		t.Error("the date does not count")
	}
	for text, want := range map[string]string{
		"- {fingerprint: 0123456789abcdef}":                               "entry 1: reason: missing",
		"- {fingerprint: xyz, reason: r}":                                 "entry 1: fingerprint:",
		"- {fingerprint: \"0123456789abcdef\", reason: r, expires: soon}": "entry 1: expires:",
	} {
		if _, problems, err := ParseSuppressions([]byte(text)); err != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v %v", text, problems, err)
		}
	}
	for _, text := range []string{"a: b", "- {fingerprint: x, unknown: y}", "- [", "\x00"} {
		if _, _, err := ParseSuppressions([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if entries, _, err := ParseSuppressions(nil); err != nil || len(entries) > 0 {
		t.Errorf("an empty file: %v %v", entries, err)
	}
}
