package layers

import (
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/kernel"
)

func TestSandboxHint(t *testing.T) {
	t.Parallel()
	landlock, mounts := kernel.Layer{Applied: true, By: kernel.Landlock}, kernel.Layer{Applied: true, By: kernel.Mounts}
	for line, want := range map[string]string{
		"codex exec fix":                               "--sandbox danger-full-access",
		"/usr/local/bin/codex":                         "--sandbox danger-full-access",
		"codex --sandbox workspace-write":              "--sandbox danger-full-access",
		"codex --sandbox danger-full-access exec fix":  "",
		"codex --sandbox=danger-full-access":           "",
		"codex -c sandbox_mode=\"danger-full-access\"": "",
		"codex --yolo":                                 "",
		"gemini -p fix":                                "",
		"gemini -s -p fix":                             "leave out --sandbox",
		"gemini --sandbox=true":                        "leave out --sandbox",
		"gemini --sandbox=false":                       "",
		"claude -p fix":                                `{"sandbox":{"enabled":false}}`,
		"make codex":                                   "",
		"":                                             "",
	} {
		for _, argv := range [][]string{strings.Fields(line), {"sh", "-c", line}} {
			got := SandboxHint(landlock, false, argv)
			if (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%q: %q", argv, got)
			}
			if SandboxHint(mounts, true, argv) != got {
				t.Errorf("%q: with --confine it is another", argv)
			}
			if SandboxHint(mounts, false, argv) != "" || SandboxHint(kernel.Layer{}, true, argv) != "" {
				t.Errorf("%q: a hint where sandboxes start", argv)
			}
		}
	}
}
