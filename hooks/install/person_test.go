package install_test

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/seed-2d964004/superqode/hooks/install"
)

// terminal runs a command in a terminal of its own, in front, as a shell would.
func (s *site) terminal(env []string, args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.Dir, s.Env(env...)
	ptmx, tty, err := pty.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	defer ptmx.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if err := tty.Close(); err != nil {
		s.t.Fatal(err)
	}
	var out bytes.Buffer
	_, _ = io.Copy(&out, ptmx) // ends with EIO when nobody has the terminal any more
	err = cmd.Wait()
	return out.String(), err
}

// TestPerson: whoever types at a terminal passes; a program that only has one
// somewhere does not, and with --strict nobody does.
func TestPerson(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.install(install.Options{})
	for name, tt := range map[string]struct {
		env  []string
		line string
		pass bool
	}{
		"typed":                   {nil, "git commit -q --allow-empty -m x", true},
		"in a pipe":               {nil, "git commit --allow-empty -m x | cat", true},
		"a script":                {nil, "sh -c 'git branch -q doomed && git branch -q -D doomed'", true},
		"quiet":                   {nil, "git commit -q --allow-empty -m x 2>/dev/null", true},
		"an agent":                {[]string{"CLAUDECODE=1"}, "git commit -q --allow-empty -m x", false},
		"another agent":           {[]string{"CODEX_SANDBOX=seatbelt"}, "git commit -q --allow-empty -m x", false},
		"a setting is no agent":   {[]string{"CODEX_HOME=/x", "AIDER_MODEL=y", "CLAUDECODE="}, "git commit -q --allow-empty -m x", true},
		"in continuous testing":   {[]string{"CI=true"}, "git commit -q --allow-empty -m x", false},
		"no input and no output":  {nil, "git commit -q --allow-empty -m x </dev/null 2>\"$TMPDIR/said\"; code=$?; cat \"$TMPDIR/said\"; exit $code", false},
		"in a session of its own": {nil, "perl -e 'use POSIX; if (fork) { wait; exit($? >> 8) } POSIX::setsid(); exec qw(git commit -q --allow-empty -m x)'", false},
	} {
		if strings.HasPrefix(tt.line, "perl") {
			if _, err := exec.LookPath("perl"); err != nil {
				continue
			}
		}
		out, err := s.terminal(tt.env, "sh", "-c", tt.line)
		if (err == nil) != tt.pass || strings.Contains(out, "superqode: refused") == tt.pass {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	s.install(install.Options{Strict: true})
	if out, err := s.terminal(nil, "git", "commit", "-q", "--allow-empty", "-m", "x"); err == nil || !strings.Contains(out, "strict") {
		t.Errorf("strict: %v\n%s", err, out)
	}
	if _, err := s.in.AllowOnce("commit"); err != nil {
		t.Fatal(err)
	}
	if out, err := s.terminal(nil, "git", "commit", "-q", "--allow-empty", "-m", "x"); err != nil {
		t.Errorf("strict, once: %v\n%s", err, out)
	}
}
