package runner

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("a writer of the caller's") }

// TestTheTerminalIsRestoredAfterAPanic crashes a copy of this process.
func TestTheTerminalIsRestoredAfterAPanic(t *testing.T) {
	t.Parallel()
	if os.Getenv("RUNNER_PANIC") != "" {
		_, _ = Run(context.Background(), Spec{Args: []string{"sh", "-c", "echo >&2; sleep 1000"}, Env: testEnv(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: panicWriter{}})
		return
	}
	s := openScreen(t)
	before := s.modes(t)
	c := exec.Command(os.Args[0], "-test.run=^TestTheTerminalIsRestoredAfterAPanic$")
	c.Env = append(os.Environ(), "RUNNER_PANIC=1")
	c.Stdin, c.Stdout = s.tty, s.tty
	var errOut lockedBuffer
	c.Stderr = &errOut
	if err := c.Run(); err == nil || !strings.Contains(errOut.String(), "a writer of the caller's") {
		t.Errorf("%v %q", err, errOut.String())
	}
	if !sameModes(before, s.modes(t)) {
		t.Error("not restored")
	}
}

// TestBackgroundJob runs superqode the way a shell's "&" does: not in the
// terminal's foreground, where setting its modes would stop the process.
func TestBackgroundJob(t *testing.T) {
	t.Parallel()
	if os.Getenv("RUNNER_BACKGROUND") != "" {
		spec := Spec{Args: []string{"sh", "-c", "[ -t 1 ] && echo still a terminal"}, Env: testEnv(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		if res, err := Run(context.Background(), spec); err != nil || res.ExitCode != 0 {
			t.Errorf("%+v %v", res, err)
		}
		return
	}
	needs(t, "bash")
	s := openScreen(t)
	c := exec.Command("bash", "--norc", "--noprofile", "-i", "-c", os.Args[0]+" -test.run='^TestBackgroundJob$' & wait; echo over")
	c.Env = append(os.Environ(), "RUNNER_BACKGROUND=1")
	c.Stdin, c.Stdout, c.Stderr = s.tty, s.tty, s.tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	startSpared(t, c)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(liveness):
		_ = c.Process.Kill()
		t.Errorf("hangs: %q", s)
	}
	s.sees(t, "still a terminal")
}
