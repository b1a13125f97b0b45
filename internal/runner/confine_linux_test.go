package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func noNewPrivs() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// confinedThreads counts the threads of this process that were confined.
func confinedThreads(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatal("no threads", err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "NoNewPrivs:\t1") {
			n++
		}
	}
	return n
}

// TestConfine: what Confine does to its thread reaches the program and its
// children, and nothing else. The main thread is never the one.
func TestConfine(t *testing.T) {
	var runs sync.WaitGroup
	for range 20 {
		runs.Go(func() {
			var out bytes.Buffer
			res, err := Run(context.Background(), Spec{
				Args: []string{"sh", "-c", "grep NoNewPrivs /proc/self/status; exit 7"}, Env: os.Environ(), Stdout: &out,
				Confine: func() error {
					if unix.Gettid() == unix.Getpid() {
						return errors.New("confined the main thread")
					}
					return noNewPrivs()
				},
			})
			if err != nil || res.ExitCode != 7 || strings.TrimSpace(out.String()) != "NoNewPrivs:\t1" {
				t.Errorf("%v %d %q", err, res.ExitCode, out.String())
			}
		})
	}
	runs.Wait()
	for range 1500 { // the threads are on their way out
		if confinedThreads(t) == 0 {
			break
		}
		unix.Select(0, nil, nil, nil, &unix.Timeval{Usec: 20000})
	}
	if n := confinedThreads(t); n > 0 {
		t.Errorf("%d confined threads are left", n)
	}
}

// TestConfineKeepsExitCodes: a program that cannot be started is distinguished from
// a confinement that is impossible.
func TestConfineKeepsExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args    []string
		confine func() error
		code    int
		is      error
	}{
		{[]string{"no-such-program"}, noNewPrivs, 127, errNotInPath},
		{[]string{text}, noNewPrivs, 126, syscall.ENOEXEC},
		{[]string{dir}, noNewPrivs, 126, syscall.EISDIR},
		{[]string{"true"}, func() error { return fmt.Errorf("landlock: %w", syscall.EACCES) }, 125, syscall.EACCES},
		{[]string{"sh", "-c", "kill -9 $$"}, noNewPrivs, 137, nil},
	} {
		res, err := Run(context.Background(), Spec{Args: tt.args, Env: os.Environ(), Confine: tt.confine})
		if res.ExitCode != tt.code || !errors.Is(err, tt.is) {
			t.Errorf("%q: %d %v", tt.args, res.ExitCode, err)
		}
		if _, ok := errors.AsType[*ConfineError](err); ok != (tt.code == 125) {
			t.Errorf("%q: %T", tt.args, err)
		}
	}
}
