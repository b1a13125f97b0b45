package hooks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// copyOf copies a fixture with its remote and its linked worktree "side".
func copyOf(t *testing.T, f *gittest.Fixture) *gittest.Fixture {
	t.Helper()
	n := gittest.In(t, filepath.Join(t.TempDir(), "repo"))
	for _, c := range [][2]string{{f.Dir, n.Dir}, {filepath.Join(f.Home, "remote.git"), filepath.Join(n.Home, "remote.git")}} {
		if out, err := exec.Command("cp", "-a", "-T", c[0], c[1]).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v %s", err, out)
		}
	}
	n.Git("config", "remote.origin.url", filepath.Join(n.Home, "remote.git"))
	n.Git("worktree", "add", "-q", "--detach", filepath.Join(n.Dir, "..", "side"), "feature")
	n.Write("paths.txt", "unstaged.txt\n")
	n.Git("rm", "-q", "--cached", "intent.txt") // git refuses to stash with it
	return n
}

// damage compares everything that is the user's: the work tree, refs, reflogs,
// stash, configuration, the remote, the linked worktree, and what is staged.
// Objects that nothing points at, FETCH_HEAD and the index's stat data are not.
func damage(t *testing.T, f *gittest.Fixture) func() []string {
	t.Helper()
	skip := []string{".git/index", ".git/objects", ".git/FETCH_HEAD", ".git/COMMIT_EDITMSG", "objects", ".git/worktrees/side/index"}
	side, remote := filepath.Join(f.Dir, "..", "side"), filepath.Join(f.Home, "remote.git")
	look := func() (a, b, c gittest.Print, staged string) {
		out, err := exec.Command("git", "-C", f.Dir, "ls-files", "-s", "-v", "-z").Output()
		if err != nil {
			out = []byte(err.Error())
		}
		if _, err := os.Lstat(side); err != nil {
			return f.Fingerprint(skip...), gittest.Print{"gone": ""}, gittest.Fingerprint(t, remote, skip...), string(out)
		}
		return f.Fingerprint(skip...), gittest.Fingerprint(t, side, "COMMON/objects", "COMMON/index", "COMMON/FETCH_HEAD", "COMMON/COMMIT_EDITMSG", "COMMON/worktrees"), gittest.Fingerprint(t, remote, skip...), string(out)
	}
	a, b, c, staged := look()
	return func() []string {
		a2, b2, c2, staged2 := look()
		var d []string
		for _, x := range append(append(a.Diff(a2), b.Diff(b2)...), c.Diff(c2)...) {
			if len(x) > 90 {
				x = x[:90]
			}
			d = append(d, x)
		}
		if staged != staged2 {
			d = append(d, "index")
		}
		return d
	}
}

func TestSurvey(t *testing.T) {
	if os.Getenv("SURVEY") == "" {
		t.Skip()
	}
	base := gittest.Dirty(t)
	data, err := os.ReadFile(os.Getenv("SURVEY"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := copyOf(t, base)
			s := newSession(t, f, f.Dir, nil)
			check := damage(t, f)
			line = strings.NewReplacer(`\n`, "\n", "GIT ", realGit(t)+" ").Replace(line)
			r := s.sh(f.Dir, line)
			d := check()
			f2 := copyOf(t, base)
			check = damage(t, f2)
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir, cmd.Env = f2.Dir, f2.Env()
			out, _ := cmd.CombinedOutput()
			plain := check()
			verdict := "SLIPS"
			if len(d) == 0 {
				verdict = "held"
			}
			t.Logf("%s | refused=%t | %s | rc=%d | without: %d | %q | %q", verdict, r.refused(), line, r.code, len(plain), d, strings.ReplaceAll(r.errOut, "\n", "/"))
			if len(plain) == 0 {
				t.Logf("   harmless without guard: %s", out)
			}
		})
	}
}
