package hooks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// inNamespace returns the words that start a program as root of a user namespace
// of its own with a new PID namespace, or ends the test where that is not allowed.
func inNamespace(t *testing.T, more ...string) []string {
	t.Helper()
	args := append([]string{"unshare", "-Urpf"}, more...)
	if err := exec.Command(args[0], append(args[1:], "true")...).Run(); err != nil {
		t.Skipf("%s: %v", strings.Join(args, " "), err)
	}
	return args
}

// TestPIDNamespace: git's number in another PID namespace is not the one that /proc
// has; it is found and ended all the same, and held where it cannot be ended.
func TestPIDNamespace(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--mount-proc"}} {
		t.Run(strings.Join(more, ""), func(t *testing.T) {
			t.Parallel()
			args := inNamespace(t, more...)
			f := userRepo(t)
			s := newSession(t, f, f.Dir, nil)
			hurt := damage(t, f)
			r := s.run(f.Dir, append(args, "sh", "-c", realGit(t)+" reset --hard; true"))
			if got := hurt(); !r.refused() || len(got) > 0 || strings.Contains(r.errOut, "could not be ended") {
				t.Errorf("exit code %d, %v\n%s", r.code, got, r.errOut)
			}
			heldAsFirst(t, f, s, append(args, realGit(t), "reset", "--hard"))
			if got := hurt(); len(got) > 0 {
				t.Errorf("as the first process: %v", got)
			}
		})
	}
}

// heldAsFirst starts git as the first process of its namespace and ends it from
// outside once it is held.
func heldAsFirst(t *testing.T, f *gittest.Fixture, s *session, argv []string) {
	t.Helper()
	errFile, err := os.Create(filepath.Join(f.Home, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = f.Dir, s.env, errFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // git and unshare; the kernel ends the rest of the namespace
		<-ended
	}()
	for !strings.Contains(read(t, errFile.Name()), "could not be ended") {
		select {
		case err := <-ended:
			ended <- err
			t.Errorf("it was not held: %v\n%s", err, read(t, errFile.Name()))
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := os.Lstat(f.Path(".git/index.lock")); err == nil {
		defer os.Remove(f.Path(".git/index.lock")) // it was ended by force: its own affair
	}
}

// TestStrangeCallers: git started in ways that hide it.
func TestStrangeCallers(t *testing.T) {
	t.Parallel()
	for i, line := range []string{
		"(exec -a '' GIT reset --hard)",
		"(exec -a sh GIT reset --hard)",
		"cp GIT ../renamed; ../renamed reset --hard",
		"cp GIT ../sh; ../sh reset --hard",
		"cp GIT ../bash; ../bash reset --hard",
		"ln -s GIT ../link; ../link reset --hard",
		"cp GIT ../gone; (sleep 0.2; rm ../gone) & exec ../gone reset --hard",
		"ulimit -n 20; GIT reset --hard",
		"setsid -w GIT reset --hard",
		"env -i GIT_CONFIG_PARAMETERS=\"$GIT_CONFIG_PARAMETERS\" GIT reset --hard",
		"GIT reset --hard 2>&- >&- <&-; echo refused: superqode: refused >&2",
		"GIT checkout -f HEAD -- $(yes README.md | head -20000)",
		"GIT -c a.b=\"$(seq 1 20000)\" reset --hard",
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			s := newSession(t, f, f.Dir, nil)
			line := strings.ReplaceAll(line, "GIT ", realGit(t)+" ")
			before := gittest.Fingerprint(t, f.Dir, ".git/index", "src/deep")
			r := s.run(f.Dir, []string{"bash", "-c", strings.ReplaceAll(line, "GIT;", realGit(t)+";")})
			if d := before.Diff(gittest.Fingerprint(t, f.Dir, ".git/index", "src/deep")); len(d) > 0 || !r.refused() {
				t.Errorf("%s: exit code %d, %v\n%.2000s", line, r.code, d, r.errOut)
			}
		})
	}
}
