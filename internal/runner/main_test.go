package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// liveness is how long anything may take before a test says that it hangs.
const liveness = 60 * time.Second

// TestMain lets the test binary be the program that is run.
func TestMain(m *testing.M) {
	if what := os.Getenv("RUNNER_HELPER"); what != "" {
		os.Exit(helper(what))
	}
	os.Exit(m.Run())
}

// helper is a small unruly program.
func helper(what string) int {
	name, arg, _ := strings.Cut(what, ":")
	n, _ := strconv.Atoi(arg)
	switch name {
	case "bomb": // every process forks two, n generations deep, all ignore TERM
		ignoreTerm()
		for range 2 {
			if n > 0 {
				c := exec.Command("/proc/self/exe")
				c.Env = append(os.Environ(), fmt.Sprintf("RUNNER_HELPER=bomb:%d", n-1))
				c.SysProcAttr = &syscall.SysProcAttr{Setsid: n%2 == 0}
				_ = c.Start()
			}
		}
		time.Sleep(liveness)
	case "flood": // n bytes on stdout
		b := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
		for n > 0 {
			k := min(n, len(b))
			if _, err := os.Stdout.Write(b[:k]); err != nil {
				return 3
			}
			n -= k
		}
	case "hear": // a child of n generations prints the signals that its group gets, until HUP
		return hear(n)
	case "nonblock": // is any stream in non-blocking mode?
		for fd := range 3 {
			fl, err := fcntlGetfl(fd)
			if err != nil || fl&syscall.O_NONBLOCK != 0 {
				fmt.Println("nonblocking", fd, err)
			}
		}
	}
	return 0
}

// hear returns 2 after a HUP. Who has children of its own hears nothing.
func hear(n int) int {
	if n == 0 {
		signals := make(chan os.Signal, 100)
		signal.Notify(signals)
		fmt.Println("ready")
		for s := range signals {
			if s == syscall.SIGURG { // the Go runtime's own
				continue
			}
			fmt.Println(s)
			if s == syscall.SIGHUP {
				break
			}
		}
		return 2
	}
	signal.Notify(make(chan os.Signal, 1)) // not to end by them
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), fmt.Sprintf("RUNNER_HELPER=hear:%d", n-1))
	c.Stdout = os.Stdout
	_ = c.Run()
	return c.ProcessState.ExitCode()
}

// lockedBuffer may be written to by two streams.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testEnv(extra ...string) []string {
	return append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "TERM=xterm"}, extra...)
}

// shell is a Spec that runs a script.
func shell(t *testing.T, script string, extra ...string) Spec {
	t.Helper()
	dir := t.TempDir()
	return Spec{Args: []string{"sh", "-c", script}, Dir: dir, Env: testEnv(extra...), Marker: "RUN=" + dir}
}

// helperSpec runs the test binary itself.
func helperSpec(t *testing.T, what string) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Args: []string{exe}, Dir: t.TempDir(), Env: testEnv("RUNNER_HELPER=" + what)}
}

// output runs spec and returns what it wrote; hanging fails the test.
func output(t *testing.T, spec Spec) (res Result, stdout, stderr string, err error) {
	t.Helper()
	var out, errOut lockedBuffer
	spec.Stdout, spec.Stderr = &out, &errOut
	res, err = finished(t, spec)
	return res, out.String(), errOut.String(), err
}

// finished runs spec and fails the test when it does not come back.
func finished(t *testing.T, spec Spec) (res Result, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = Run(context.Background(), spec)
	}()
	select {
	case <-done:
	case <-time.After(2 * liveness):
		t.Fatalf("Run(%q) hangs", spec.Args)
	}
	return res, err
}

// waitFor polls until ok holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(liveness); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// gone reports whether the process whose number stands in file is no more.
func gone(t *testing.T, file string) bool {
	t.Helper()
	pid := pidIn(t, file)
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func written(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Size() > 0
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(program + " is not here")
	}
}

func logOf(t *testing.T) string { return filepath.Join(t.TempDir(), "command.log") }

func readAll(t *testing.T, f string) string {
	t.Helper()
	b, err := os.ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
