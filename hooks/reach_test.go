package hooks_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// userTemplate is the dirty fixture with its remote and a linked worktree "../side".
var userTemplate = gittest.Template{Build: func(f *gittest.Fixture) {
	gittest.MakeDirty(f)
	f.Git("worktree", "add", "-q", "--detach", filepath.Join(f.Dir, "..", "side"), "feature")
	f.Write("paths.txt", "unstaged.txt\n")
	f.Git("rm", "-q", "--cached", "intent.txt") // git does not stash while it is there
}}

// userRepo makes what userTemplate holds. Git is called by its absolute path in
// every test: nothing but the hooks stands in the way.
func userRepo(t *testing.T) *gittest.Fixture {
	t.Helper()
	return userTemplate.Make(t)
}

// damage looks at everything that is the user's: the work tree, refs, reflogs,
// stash, configuration, the remote, the linked worktree, and what is staged. The
// result tells what has changed since. Objects that nothing points at, the
// index's stat data, empty folders for refs and reports of a crash do not count.
func damage(t *testing.T, f *gittest.Fixture) func() []string {
	t.Helper()
	skip := []string{".git/index", ".git/objects", ".git/FETCH_HEAD", ".git/COMMIT_EDITMSG", "objects", ".git/worktrees/side/index"}
	odd := regexp.MustCompile(`^\.git/refs/(notes|replace|original)(/|$)`)
	side, remote := filepath.Join(f.Dir, "..", "side"), filepath.Join(f.Home, "remote.git")
	look := func() gittest.Print {
		p := gittest.Print{}
		for prefix, dir := range map[string]string{"": f.Dir, "SIDE/": side, "REMOTE/": remote} {
			if _, err := os.Lstat(dir); err != nil {
				continue
			}
			for name, facts := range gittest.Fingerprint(t, dir, skip...) {
				emptied := strings.HasPrefix(facts, "d") && odd.MatchString(name)
				if !emptied && !strings.HasPrefix(name, "COMMON/") && !strings.Contains(name, "fast_import_crash") {
					p[prefix+name] = facts
				}
			}
		}
		index, err := git.ReadIndex(f.Path(".git/index"), "sha1")
		if err != nil {
			p["INDEX"] = err.Error()
			return p
		}
		for i, e := range index.Entries() {
			e.Stat = git.IndexStat{}
			p[fmt.Sprintf("INDEX/%d %s", i, e.Path)] = fmt.Sprintf("%+v", e)
		}
		return p
	}
	before := look()
	return func() []string { return before.Diff(look()) }
}

// reachCase is one line of testdata/reach.txt.
type reachCase struct {
	name   string
	expect string // "refused": with no change at all; "slips": it goes through; "slips<2.46", "slips>2.53": with such a git
	line   string
}

func reachCases(t *testing.T) []reachCase {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []reachCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			expect, rest, _ := strings.Cut(line, " ")
			list = append(list, reachCase{fmt.Sprintf("%03d", len(list)), expect, strings.TrimSpace(rest)})
		}
	}
	return list
}

// shellLine puts the real git's path in place of GIT, and a newline of \n.
func shellLine(t *testing.T, line string) string {
	return strings.NewReplacer(`\n`, "\n", "GIT ", realGit(t)+" ").Replace(line)
}

// expected looks at the version that an expectation is limited to.
func expected(t *testing.T, expect string) string {
	t.Helper()
	if len(expect) < 6 || expect[:5] != "slips" {
		return expect
	}
	limit, err := git.ParseVersion("git version " + expect[6:])
	if err != nil {
		t.Fatal(err)
	}
	have := gitVersion(t)
	if expect[5] == '<' && have.Before(limit) || expect[5] == '>' && limit.Before(have) && have[1] > limit[1] {
		return "slips"
	}
	return "refused"
}

// TestReach holds the hooks to what docs/guard.md says: each line does harm
// without the session's hooks, and with them either none, or it is listed as one
// that passes. A line that begins to be refused fails, too: the table is then to
// be corrected.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, tt := range reachCases(t) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			line := shellLine(t, tt.line)
			bare := userRepo(t)
			hurt := damage(t, bare)
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir, cmd.Env = bare.Dir, bare.Env()
			out, _ := cmd.CombinedOutput() // many of these fail half way
			if bytes.Contains(out, []byte("built without support")) {
				t.Skipf("%s", out)
			}
			if len(hurt()) == 0 {
				t.Errorf("%s does no harm by itself: it proves nothing\n%s", tt.line, out)
			}
			f := userRepo(t)
			s := newSession(t, f, f.Dir, nil)
			hurt = damage(t, f)
			r := s.sh(f.Dir, line)
			got := hurt()
			tt.expect = expected(t, tt.expect)
			switch {
			case tt.expect == "refused" && (len(got) > 0 || !r.refused()):
				t.Errorf("%s: exit code %d, refused %t\n%s\nchanged: %s", tt.line, r.code, r.refused(), r.errOut, strings.Join(got, "\n"))
			case tt.expect == "slips" && len(got) == 0:
				t.Errorf("%s is refused now: say so in testdata/reach.txt and docs/guard.md\n%s", tt.line, r.errOut)
			case tt.expect == "refused" && len(s.attempts()) == 0:
				t.Errorf("%s: nothing in the log", tt.line)
			case tt.expect != "refused" && tt.expect != "slips":
				t.Errorf("unknown expectation %q", tt.expect)
			}
			if left, _ := filepath.Glob(filepath.Join(f.Dir, ".git", "*.lock")); len(left) > 0 {
				t.Errorf("%s leaves %v", tt.line, left)
			}
		})
	}
}
