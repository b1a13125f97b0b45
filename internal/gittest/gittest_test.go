package gittest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

func TestDirtyHoldsEveryState(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	status := f.Status()
	for _, want := range []string{
		"1 M. N... 100644 100644 100644 ", // staged
		"1 .M N... 100644 100644 100644 ", // unstaged
		"1 MM N... ",                      // both
		"1 .D N... ",                      // deleted
		"1 D. N... ",                      // removed
		"2 R. N... ",                      // renamed
		"1 .A N... ",                      // intent to add
		"1 A. N... ",                      // new
		"1 .T N... ",                      // type changed
		"1 .M N... 100644 100644 100755 ", // mode changed
		"? untracked.txt",
		"? new-folder/inner/untracked.go",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("status lacks %q:\n%s", want, status)
		}
	}
	if strings.Contains(status, "debug.log") || strings.Contains(status, "build/") {
		t.Errorf("ignored files show:\n%s", status)
	}
	for _, q := range [][]string{{"rev-parse", "feature"}, {"rev-parse", "v1.0.0"}, {"rev-parse", "stash@{0}"}, {"rev-parse", "origin/main"}} {
		f.Git(q...)
	}
}

func TestFixturesAreRepeatable(t *testing.T) {
	t.Parallel()
	a, b := gittest.Dirty(t), gittest.Dirty(t)
	if x, y := a.Git("rev-parse", "HEAD", "feature", "stash"), b.Git("rev-parse", "HEAD", "feature", "stash"); x != y {
		t.Errorf("commit ids differ: %s and %s", x, y)
	}
	if d := cmp.Diff(a.Status(), b.Status()); d != "" {
		t.Error(d)
	}
	if x, y := gittest.Many(t, 50).Git("rev-parse", "HEAD^{tree}"), gittest.Many(t, 50).Git("rev-parse", "HEAD^{tree}"); x != y {
		t.Errorf("trees differ: %s and %s", x, y)
	}
}

func TestManyIsClean(t *testing.T) {
	t.Parallel()
	f := gittest.Many(t, 300)
	if s := f.Status(); s != "" {
		t.Errorf("not clean:\n%s", s)
	}
	if n := len(strings.Fields(f.Git("ls-files"))); n != 300 {
		t.Errorf("%d files, want 300", n)
	}
	if _, err := os.Stat(f.Path(gittest.ManyPath(299))); err != nil {
		t.Error(err)
	}
}

func TestFingerprintSeesEveryChange(t *testing.T) {
	t.Parallel()
	changes := map[string]func(f *gittest.Fixture){
		"byte":      func(f *gittest.Fixture) { f.Write("README.md", f.Read("README.md")+"x") },
		"mode":      func(f *gittest.Fixture) { f.WriteMode("README.md", f.Read("README.md"), 0o600) },
		"new":       func(f *gittest.Fixture) { f.Write("new", "") },
		"gone":      func(f *gittest.Fixture) { f.Remove("debug.log") },
		"link":      func(f *gittest.Fixture) { f.Remove("link"); f.Symlink("empty.txt", "link") },
		"empty dir": func(f *gittest.Fixture) { f.Remove("empty-folder") },
		"ref":       func(f *gittest.Fixture) { f.Git("branch", "other") },
		"index":     func(f *gittest.Fixture) { f.Git("add", "untracked.txt") },
		"stash":     func(f *gittest.Fixture) { f.Git("stash", "drop", "-q") },
		"config":    func(f *gittest.Fixture) { f.Git("config", "a.b", "c") },
		"hook":      func(f *gittest.Fixture) { f.Remove(".git/hooks/pre-commit") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint()
			gittest.Same(t, before, f.Fingerprint())
			change(f)
			if d := before.Diff(f.Fingerprint()); len(d) == 0 {
				t.Error("no difference seen")
			}
		})
	}
}

func TestFingerprintOfLinkedWorktree(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	dir := t.TempDir() + "/linked"
	f.Git("worktree", "add", "-q", "--detach", dir)
	before := gittest.Fingerprint(t, dir)
	f.Git("branch", "other")
	if d := before.Diff(gittest.Fingerprint(t, dir)); len(d) != 2 { // the ref and its log
		t.Errorf("differences: %q", d)
	}
	if d := before.Diff(gittest.Fingerprint(t, dir, "COMMON/refs", "COMMON/logs")); len(d) == 0 || !strings.HasPrefix(d[0], `"COMMON/`) {
		t.Errorf("exclusion without effect: %q", d)
	}
}

func TestEnvIsIsolated(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	env := f.Env("HOME=/elsewhere", "NEW=1")
	var home []string
	for _, kv := range env {
		if strings.HasPrefix(kv, "HOME=") {
			home = append(home, kv)
		}
	}
	if d := cmp.Diff([]string{"HOME=/elsewhere"}, home); d != "" {
		t.Error(d)
	}
	if got := f.Git("config", "user.name"); got != "Test Author" {
		t.Errorf("user.name is %q", got)
	}
}

func BenchmarkMany10k(b *testing.B) {
	for b.Loop() {
		gittest.Many(b, 10000)
	}
}
