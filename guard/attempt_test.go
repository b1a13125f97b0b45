package guard_test

import (
	"testing"

	"github.com/seed-2d964004/superqode/guard"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://user:pass@host/x.git":                              "https://…@host/x.git",
		"https://ghp_abcdefghijklmnop1234@host/x":                   "https://…@host/x",
		"ssh://git@host/x":                                          "ssh://…@host/x",
		"git@host:x.git":                                            "git@host:x.git",
		"https://host/x?access_token=abc&y=1":                       "https://host/x?access_token=…&y=1",
		"http.extraHeader=Authorization: Bearer abcdef":             "http.extraHeader=Authorization: …",
		"--password=abc":                                            "--password=…",
		"a message about github_pat_11ABCDEFG0123456789_abcdefghij": "a message about …",
		"plain words, nothing else":                                 "plain words, nothing else",
	} {
		if got := guard.WithoutSecrets(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
