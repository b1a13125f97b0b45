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

// TestCompletionInBash types a command line with a real Tab into a real bash.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("skipped: no bash here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "a folder", "superqode") // the blank must not matter
	if err := os.Mkdir(filepath.Dir(bin), 0o700); err != nil {
		t.Fatal(err)
	}
	// A file of its own, since the code that bash gets names what /proc tells: by
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
	repo := f.Dir
	env := []string{"HOME=" + dir, "SUPERQODE_HOME=" + filepath.Join(dir, "sq"), "PATH=" + filepath.Dir(bin) + ":" + os.Getenv("PATH"), "TERM=dumb", "PS1=$ ", "SUPERQODE_TEST_SHIM=" + scriptShim,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	create := exec.Command(bin, "workspace", "create", "--name", "bench")
	create.Dir, create.Env = repo, env
	out, err := create.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	id, _, _ := strings.Cut(string(out), "\t")

	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Dir, cmd.Env = repo, env
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
	await := func(want string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for !strings.Contains(seen.String(), want) {
			select {
			case b, ok := <-screen:
				if !ok {
					t.Fatalf("bash ended; it showed %q", seen.String())
				}
				seen.Write(b)
			case <-deadline:
				t.Fatalf("no %q came; bash showed %q", want, seen.String())
			}
		}
	}
	for _, step := range []struct{ typed, want string }{
		{"source <(superqode completion bash); echo rea''dy\n", "ready"},
		{"superqode workspace path --session qe\t\n", id},
		{"superqode workspace path -s ben\t; echo do''ne\n", "bench ; echo"},
		{"exit\n", "exit"},
	} {
		if _, err := io.WriteString(tty, step.typed); err != nil {
			t.Fatal(err)
		}
		await(step.want)
	}
}
