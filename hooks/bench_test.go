package hooks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// benchSession is a session on a repository of n files, with the helper that is
// installed and not this test binary, which starts more slowly.
func benchSession(b *testing.B, n int) (*gittest.Fixture, *session) {
	b.Helper()
	f := gittest.Repo(b)
	for i := range n {
		f.Write(fmt.Sprintf("d%d/s%d/f%d.txt", i%97, i%7, i), fmt.Sprintf("file %d\n", i))
	}
	f.Commit("one")
	f.Settle()
	s := newSession(b, f, f.Dir, func(st *guard.SessionState) { st.Allow = []string{"commit"} })
	helper := filepath.Join(s.dir, "bin", helperName)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", helper+".new", "../cmd/superqode-shim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	s.must(os.Remove(helper))
	s.must(os.Rename(helper+".new", filepath.Join(s.dir, "hooks", hooks.HelperFile)))
	s.must(hooks.Populate(b.Context(), s.st, hooks.Folder{Dir: filepath.Join(s.dir, "hooks"), Helper: filepath.Join(s.dir, "hooks", hooks.HelperFile), Config: userConfig(b, f)}))
	return f, s
}

// BenchmarkGit compares git in a guarded repository with and without the hooks.
func BenchmarkGit(b *testing.B) {
	for _, n := range []int{100, 10000} {
		f, s := benchSession(b, n)
		made := 0
		for _, line := range []string{"status --porcelain", "diff --stat", "add -A", "log -1 --oneline", "branch", "switch -q -c", "commit -q --allow-empty -m"} {
			for _, kind := range []string{"plain", "hooks"} {
				args := strings.Fields(line)
				b.Run(fmt.Sprintf("%s/%d/%s", args[0], n, kind), func(b *testing.B) {
					env := s.env
					if kind == "plain" {
						env = f.Env()
					}
					for b.Loop() {
						argv := args
						if args[0] == "branch" || args[0] == "switch" || args[0] == "commit" {
							made++
							argv = append(args[:len(args):len(args)], fmt.Sprintf("name-%d", made))
						}
						cmd := exec.Command(realGit(b), argv...)
						cmd.Dir, cmd.Env = f.Dir, env
						if out, err := cmd.CombinedOutput(); err != nil {
							b.Fatalf("%v\n%s", err, out)
						}
					}
				})
			}
		}
	}
}

// BenchmarkScratch makes commits in a repository of the session's own, with the
// session's environment and without.
func BenchmarkScratch(b *testing.B) {
	_, s := benchSession(b, 10)
	for _, kind := range []string{"plain", "hooks"} {
		b.Run(kind, func(b *testing.B) {
			f := gittest.Repo(b)
			env := f.Env()
			if kind == "hooks" {
				env = s.env
			}
			for b.Loop() {
				cmd := exec.Command(realGit(b), "commit", "-q", "--allow-empty", "-m", "x")
				cmd.Dir, cmd.Env = f.Dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}

// BenchmarkCall is one call of the helper.
func BenchmarkCall(b *testing.B) {
	f, s := benchSession(b, 10)
	for _, name := range []string{"reference-transaction committed", "pre-push", "fsmonitor 2 0", "nothing"} {
		b.Run(name, func(b *testing.B) {
			argv := strings.Fields(filepath.Join(s.dir, "hooks") + "/" + name)
			if i := strings.Index(s.dir, " "); i >= 0 { // the folder's name holds a space
				argv = strings.Fields(name)
				argv[0] = filepath.Join(s.dir, "hooks", argv[0])
			}
			if name == "nothing" {
				argv = []string{"true"}
			}
			for b.Loop() {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir, cmd.Env = f.Dir, s.env
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
