package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// shell is a user's shell at a terminal, in a repository, with superqode in its PATH.
type shell struct {
	*gittest.Fixture
	keys *os.File
	pid  int
	mu   sync.Mutex
	text strings.Builder
	seen int // of text
}

func openShell(t *testing.T) *shell {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	s := &shell{Fixture: gittest.Repo(t)}
	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Dir, cmd.Env = s.Dir, s.Env("PS1=prompt> ", "HISTFILE=", "SUPERQODE_TEST_SHIM="+scriptShim)
	if s.keys, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := s.keys.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGHUP) // it passes that on to its jobs
		_ = cmd.Process.Signal(syscall.SIGCONT)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for waiting := true; waiting; {
			select {
			case <-ended:
				waiting = false
			case <-time.After(100 * time.Millisecond): // it had looked for signals just before it began to wait for keys
				_, _ = s.keys.WriteString("\r")
			}
		}
		<-read
		s.keys.Close()
	})
	s.sees(t, "prompt>")
	return s
}

// sees waits until a text is on the screen, behind what was seen before.
func (s *shell) sees(t *testing.T, text string) {
	t.Helper()
	s.waits(t, text+" on the screen", func(behind string) (bool, error) {
		i := strings.Index(behind, text)
		if i >= 0 {
			s.seen += i + len(text)
		}
		return i >= 0, nil
	})
}

// waits asks until the answer is yes. What is on the screen and was not seen before is there to decide by.
func (s *shell) waits(t *testing.T, what string, yes func(behind string) (bool, error)) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		all := s.text.String()
		s.mu.Unlock()
		ok, err := yes(all[s.seen:])
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s; the screen shows %q, then %q", what, all[:s.seen], all[s.seen:])
		}
	}
}

func (s *shell) types(t *testing.T, text string) {
	t.Helper()
	if _, err := s.keys.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// suspends types Ctrl-Z: once.
func (s *shell) suspends(t *testing.T) {
	t.Helper()
	s.types(t, "\x1a")
	s.sees(t, "Stopped")
}

// leaves waits until the shell has given the terminal to a job: what is typed before
// that is the shell's.
func (s *shell) leaves(t *testing.T) {
	t.Helper()
	s.waits(t, "job that has the terminal", func(string) (bool, error) {
		group, err := unix.IoctlGetInt(int(s.keys.Fd()), unix.TIOCGPGRP)
		return group != s.pid, err
	})
}

// stopped waits until the process whose number a file holds has stopped, or goes on.
func (s *shell) stopped(t *testing.T, file string, want bool) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(s.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	s.waits(t, fmt.Sprintf("process %s with stopped %v", pid, want), func(string) (bool, error) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return strings.Contains(string(stat), ") T ") == want, err
	})
}

// TestJobOfAShell: for the shell that superqode was started from, it and its program are
// one job, and the program has the window's size.
func TestJobOfAShell(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc")
	}
	const program = `sh -c 'trap "stty size; echo resized" WINCH; echo $$ >pid; stty -echo; echo ready; ` +
		`until [ -e stop ]; do sleep 0.05; done; stty size; echo over'`
	const run = "superqode -q run --mode shared "
	for name, tt := range map[string]struct{ line, size string }{
		"at the terminal":            {run + "-- " + program, "12 34"},
		"its output goes elsewhere":  {run + "-- " + program + " | cat", ""},
		"behind another shell":       {"sh -c \"$LINE; true\"", "12 34"},
		"several agents, one folder": {run + `--shared-workspace --agent a="$PROGRAM" --agent b='sleep 0.1'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShell(t)
			s.types(t, "PROGRAM="+quote(program)+"; LINE="+quote(run+"-- "+program)+"; stty -g >before\r")
			s.sees(t, "prompt>")
			s.types(t, tt.line+"\r")
			s.sees(t, "ready\r\n")
			s.stopped(t, "pid", false)
			if tt.size != "" {
				if err := pty.Setsize(s.keys, &pty.Winsize{Rows: 12, Cols: 34}); err != nil {
					t.Fatal(err)
				}
				s.sees(t, tt.size+"\r\nresized")
			}
			s.suspends(t)
			s.sees(t, "prompt>")
			s.stopped(t, "pid", true)
			s.types(t, "stty -g >while; jobs\r")
			s.sees(t, "Stopped")
			s.types(t, "bg\r") // in the background it goes on and leaves the terminal alone
			s.stopped(t, "pid", false)
			s.types(t, "echo typed $((1+1))\r")
			s.sees(t, "typed 2")
			s.types(t, "fg; echo code $?\r")
			s.leaves(t)
			s.suspends(t)
			s.stopped(t, "pid", true)
			s.types(t, "fg; echo code $?\r")
			s.stopped(t, "pid", false)
			s.Write("stop", "")
			s.sees(t, "over")
			s.sees(t, "code 0")
			s.types(t, "stty -g >after; cmp before after && cmp before while && echo same modes\r")
			s.sees(t, "\nsame modes")
		})
	}
}

// TestAKilledProgramStopsNoJob: before a tree is killed it is stopped, which is not for
// superqode to follow.
func TestAKilledProgramStopsNoJob(t *testing.T) {
	t.Parallel()
	s := openShell(t)
	s.types(t, "for i in 1 2 3 4 5; do superqode -q run --mode shared --max-disk 1k -- sh -c 'head -c 100000 /dev/zero >f$$; sleep 100 & sleep 100'; done; echo code $?\r")
	s.sees(t, "\ncode 137")
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
