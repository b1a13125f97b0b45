package artifacts

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
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
		got, err := WithoutSuppression([]byte(tt.in), one)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, got, tt.want)
		}
	}
	for _, bad := range []string{"[{fingerprint: " + one + ", reason: a}, {fingerprint: " + two + ", reason: b}]\n", "a: b\n"} {
		if _, err := WithoutSuppression([]byte(bad), one); !errors.Is(err, superqode.ErrUsage) {
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
		with, err := WithSuppression([]byte(data), Suppression{Fingerprint: print, Reason: reason, Title: title})
		if err != nil {
			t.Skip() // not a list that can be added to
		}
		if got, _, err := ParseSuppressions(with); err != nil || len(got) > len(before)+1 {
			t.Fatalf("%q: %v %v", with, got, err)
		}
		without, err := WithoutSuppression(with, print)
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
