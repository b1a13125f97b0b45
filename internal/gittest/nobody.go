package gittest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Test is the part of *testing.T that Unprivileged needs.
type Test interface {
	Helper()
	Name() string
	Context() context.Context
	Errorf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Unprivileged reports whether the test goes on here. Root is kept out by no
// permission bits, so as root the test binary runs this test again as nobody
// (uid and gid 65534) and the caller returns. What fails there fails here; where
// that cannot be done the test is skipped, with the reason.
func Unprivileged(t Test) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp", "PATH=" + os.Getenv("PATH"), ShimVariable + "=" + os.Getenv(ShimVariable)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("as nobody:\n%s", out)
	case err != nil:
		t.Skipf("cannot run as nobody: %v", err)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Skipf("not run as nobody:\n%s", out)
	}
	return false
}
