package layers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/artifacts"
)

func testGrounds() grounds {
	return grounds{denials: denials, cwd: "/home/u/.superqode/w/qe", origin: "/home/u/my repo",
		closed: []string{"/home/u/.superqode", "/home/u/my repo", "/home/u/my repo/.git"}, open: []string{"/home/u/.superqode/w"}}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	repo := "/home/u/my repo"
	inPlace := grounds{denials: denials, cwd: "/o", closed: []string{"/sq", "/o/.git"}, open: []string{"/o"}}
	for line, want := range map[string]string{
		"touch: cannot touch '" + repo + "/x': Permission denied":                            repo + "/x",
		"sh: 1: cannot create " + repo + "/a b: Read-only file system":                       repo + "/a b",
		"sh: 1: cannot create README.md: Read-only file system":                              repo + "/README.md",
		"sh: 1: cannot create README.md: Permission denied":                                  "",
		"sh: 1: cannot create ../../session.json: Permission denied":                         "/home/u/.superqode/session.json",
		"OSError: [Errno 30] Read-only file system: '" + repo + "/x'":                        repo + "/x",
		"open /home/u/.superqode/k: permission denied":                                       "/home/u/.superqode/k",
		"EACCES: permission denied, open '/home/u/.superqode/k'":                             "/home/u/.superqode/k",
		"fatal: Unable to create '" + repo + "/.git/index.lock': Read-only file system":      repo + "/.git/index.lock",
		"rm: cannot remove ‘" + repo + "/x’: Device or resource busy":                        repo + "/x",
		"java.io.FileNotFoundException: /home/u/.superqode/k (Permission denied)":            "/home/u/.superqode/k",
		"chmod: changing permissions of '" + repo + "/x': Operation not permitted":           repo + "/x",
		"mv: cannot move '/home/u/.superqode/w/qe/a' to '" + repo + "/a': Permission denied": repo + "/a",
		"\x1b[31mopen /home/u/.superqode/k\x1b[0m permission denied":                         "/home/u/.superqode/k",
		"touch: cannot touch '/etc/x': Permission denied":                                    "",
		"touch: cannot touch '/home/u/.superqode/w/qe/x': Permission denied":                 "",
		"touch: cannot touch '/home/u/my repository/x': Permission denied":                   "",
		"touch: cannot touch '" + repo + "/root-owned': Permission denied":                   "",
		"git@example.com: Permission denied (publickey).":                                    "",
		"Permission denied": "",
		"reading " + repo + "/x: No such file or directory":                            "",
		repo + "/x " + strings.Repeat("long", maxLookedLine/4) + ": Permission denied": "",
	} {
		want := map[bool][]artifacts.KernelRefusal{true: {}, false: {{Path: want, Count: 1}}}[want == ""]
		may := func(path string) bool { return !strings.HasSuffix(path, "root-owned") }
		if d := cmp.Diff(want, refusals([]byte("before\n"+line+"\nafter"), testGrounds(), may)); d != "" {
			t.Errorf("%s\n%s", line, d)
		}
	}
	all := func(string) bool { return true }
	got := refusals([]byte("a: open .git/config: permission denied\nopen /o/x: permission denied\nb: '/o/.git/HEAD': Read-only file system\n"+
		"open /o/.git/HEAD: Permission denied: Permission denied\n"), inPlace, all)
	if d := cmp.Diff([]artifacts.KernelRefusal{{Path: "/o/.git/HEAD", Count: 2}, {Path: "/o/.git/config", Count: 1}}, got); d != "" {
		t.Error(d)
	}
	inPlace.denials = []string{readOnly, busy}
	if got := refusals([]byte("sh: 1: /sq/no-program: Permission denied\nrm: '/sq': Device or resource busy\n"), inPlace, all); len(got) != 1 || got[0].Path != "/sq" {
		t.Errorf("mounts: %+v", got)
	}
	inPlace.denials = denials
	var many strings.Builder
	for n := range maxLookedPaths + 50 {
		fmt.Fprintf(&many, "open /sq/%d: permission denied\n", n)
	}
	if got := refusals([]byte(many.String()), inPlace, all); len(got) != maxLookedPaths+1 || got[0].Path != "/sq" || got[0].Count != 50 {
		t.Errorf("%d, %+v", len(got), got[0])
	}
}

// FuzzRefusals: whatever a program prints, only protected paths are named, and no line
// counts twice.
func FuzzRefusals(f *testing.F) {
	f.Add("touch: cannot touch '/home/u/my repo/x': Permission denied\nead-only file system")
	f.Add("‘\xff/: ermission denied")
	f.Fuzz(func(t *testing.T, output string) {
		at, sum := testGrounds(), 0
		for _, r := range refusals([]byte(output), at, func(string) bool { return true }) {
			if sum += r.Count; at.in(r.Path) == "" || r.Count < 1 {
				t.Errorf("%+v", r)
			}
		}
		if lines := strings.Count(output, "\n") + 1; sum > lines {
			t.Errorf("%d of %d lines", sum, lines)
		}
	})
}
