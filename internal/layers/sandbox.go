package layers

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/kernel"
)

// sandbox is a program that puts what it runs into a sandbox of its own.
type sandbox struct {
	program string
	on      []string // words of a command line that switch it on; none: it is the default
	off     []string // words that switch it off
	hint    string
}

// sandboxes are the coding agents that have one on Linux: Codex (bubblewrap, the
// default), Gemini (containers) and Claude Code (bubblewrap, by a setting).
var sandboxes = []sandbox{
	{"codex", nil, []string{"danger-full-access", "--dangerously-bypass-approvals-and-sandbox", "--yolo"},
		"add to codex: --sandbox danger-full-access"},
	{"gemini", []string{"-s", "--sandbox"}, []string{"--sandbox=false"}, "leave out --sandbox of gemini"},
	{"claude", nil, nil, `if /sandbox is on in claude, add: --settings '{"sandbox":{"enabled":false}}'`},
}

// SandboxHint says what to change in a command line whose program cannot start its own
// sandbox under a kernel layer in which nothing can be mounted; "" when nothing is known
// against it. Of a shell's command line the first command counts.
func SandboxHint(layer kernel.Layer, confine bool, argv []string) string {
	if !layer.Applied || layer.By == kernel.Mounts && !confine || len(argv) == 0 {
		return ""
	}
	if len(argv) > 2 && argv[1] == "-c" && strings.HasSuffix(filepath.Base(argv[0]), "sh") {
		if argv = strings.Fields(argv[2]); len(argv) == 0 {
			return ""
		}
	}
	for _, s := range sandboxes {
		has := func(list []string) bool {
			return slices.ContainsFunc(argv[1:], func(w string) bool {
				return slices.ContainsFunc(list, func(flag string) bool {
					return w == flag || strings.HasPrefix(w, flag+"=") || flag[0] != '-' && strings.Contains(w, flag)
				})
			})
		}
		if filepath.Base(argv[0]) == s.program && (s.on == nil || has(s.on)) && !has(s.off) {
			return "the kernel layer lets no program mount, so that its own sandbox does not start: " + s.hint
		}
	}
	return ""
}
