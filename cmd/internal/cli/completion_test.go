package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// completable is what there is to complete: a session in a repository, and
// superqode in a folder whose name has a blank.
type completable struct {
	repo, id string
	env      []string
}

func newCompletable(t *testing.T) completable {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "a folder", "superqode") // the blank must not matter
	if err := os.Mkdir(filepath.Dir(bin), 0o700); err != nil {
		t.Fatal(err)
	}
	// A file of its own, since the code that a shell gets names what /proc tells: by
	// the test binary's own name it would be the tests again.
	if err := os.Link(self, bin); err != nil {
		data, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bin, data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f := gittest.Repo(t)
	f.Write("a", "a\n")
	f.Commit("first")
	c := completable{repo: f.Dir, env: []string{
		"HOME=" + dir, "SUPERQODE_HOME=" + filepath.Join(dir, "sq"), "PATH=" + filepath.Dir(bin) + ":" + os.Getenv("PATH"), "TERM=dumb", "PS1=$ ", "SUPERQODE_TEST_SHIM=" + scriptShim,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
	}}
	create := exec.Command(bin, "workspace", "create", "--name", "bench")
	create.Dir, create.Env = c.repo, c.env
	out, err := create.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	c.id, _, _ = strings.Cut(string(out), "\t")
	return c
}

// TestCompletionTyped types command lines with a real Tab into real shells.
func TestCompletionTyped(t *testing.T) {
	t.Parallel()
	for shell, flags := range map[string][]string{"bash": {"--norc", "--noprofile", "-i"}, "zsh": {"-f", "-i", "+o", "PROMPT_SP"}} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("skipped: no %s here", shell)
			}
			c := newCompletable(t)
			cmd := exec.Command(path, flags...)
			cmd.Dir, cmd.Env = c.repo, c.env
			typeInto(t, cmd, []typed{
				{"source <(superqode completion " + shell + "); echo rea''dy\n", "ready"},
				{"superqode workspace path --session qe\t\n", c.id},
				{"superqode workspace path -s ben\t; echo do''ne\n", "done"},
				{"superqode finding list --severity cri\t; echo en''ded\n", "ended"},
				{"exit\n", ""},
			}, "--session "+c.id, "bench", "--severity critical")
		})
	}
}

// typed is what is typed next, and what has to be seen before going on.
type typed struct{ keys, await string }

// typeInto runs cmd on a terminal; in the end everything in want has been seen.
func typeInto(t *testing.T, cmd *exec.Cmd, steps []typed, want ...string) {
	t.Helper()
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = tty.Close(); _ = cmd.Wait() }()
	screen := make(chan []byte, 64)
	go func() {
		defer close(screen)
		for range 1000 {
			b := make([]byte, 4096)
			n, err := tty.Read(b)
			if n > 0 {
				screen <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var seen bytes.Buffer
	deadline := time.After(2 * time.Minute)
	for _, step := range steps {
		if _, err := io.WriteString(tty, step.keys); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(seen.String(), step.await) {
			select {
			case b, ok := <-screen:
				if !ok {
					t.Fatalf("the shell ended; it showed %q", seen.String())
				}
				seen.Write(b)
			case <-deadline:
				t.Fatalf("no %q came; the shell showed %q", step.await, seen.String())
			}
		}
	}
	for _, w := range want {
		if !strings.Contains(seen.String(), w) {
			t.Errorf("no %q in %q", w, seen.String())
		}
	}
}

// TestCompletionInFish asks a real fish what it would offer.
func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("skipped: no fish here")
	}
	c := newCompletable(t)
	for line, want := range map[string]string{
		"superqode workspace li": "list", "superqode workspace path --session qe": c.id, "superqode workspace path -s ben": "bench",
		"superqode report --format h": "html", "superqode artifacts list --type cov": "coverage", "superqode finding list --severity ": "critical\nhigh\ninfo\nlow\nmedium",
	} {
		cmd := exec.Command(fish, "--no-config", "-c", "superqode completion fish | source; complete -C $argv[1]", line)
		cmd.Dir, cmd.Env = c.repo, c.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s: offered %q, want %q", line, got, want)
		}
	}
}
