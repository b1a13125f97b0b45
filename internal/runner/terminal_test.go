package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// screen is the user's terminal: what the program sees goes through two of them.
type screen struct {
	keys, tty *os.File // what the user holds, and what superqode got
	mu        sync.Mutex
	text      strings.Builder
	done      chan struct{}
}

func openScreen(t *testing.T) *screen {
	t.Helper()
	keys, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(keys, &pty.Winsize{Rows: 33, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	s := &screen{keys: keys, tty: tty, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		tty.Close()
		<-s.done
		keys.Close()
		if t.Failed() {
			t.Logf("the screen showed %q", s)
		}
	})
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) sees(t *testing.T, text string) {
	t.Helper()
	waitFor(t, text+" on the screen", func() bool { return strings.Contains(s.String(), text) })
}

func (s *screen) types(t *testing.T, text string) {
	t.Helper()
	if _, err := s.keys.WriteString(text); err != nil {
		t.Error(err)
	}
}

// modes are the terminal's modes, to be compared before and after.
func (s *screen) modes(t *testing.T) *term.State {
	t.Helper()
	st, err := term.GetState(int(s.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (s *screen) spec(t *testing.T, script string) Spec {
	t.Helper()
	spec := shell(t, script)
	spec.Stdin, spec.Stdout, spec.Stderr = s.tty, s.tty, s.tty
	return spec
}

// begin starts spec, which does not outlive the test; the returned function waits for its end.
func begin(t *testing.T, spec Spec) func() (Result, error) {
	t.Helper()
	var res Result
	var err error
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background()) // ends after the other clean-ups; t.Context ends before them
	t.Cleanup(cancel)
	go func() {
		defer close(done)
		res, err = Run(ctx, spec)
	}()
	return func() (Result, error) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(liveness):
			t.Fatal("hangs")
		}
		return res, err
	}
}

func sameModes(a, b *term.State) bool { return *a == *b }

func TestATerminalStaysATerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t)
	before := s.modes(t)
	spec := s.spec(t, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; stty size; tty; printf 'name? '; read x; echo \"<$x>\"; exit 5")
	spec.Log = logOf(t)
	end := begin(t, spec)
	s.sees(t, "name? ")
	if sameModes(before, s.modes(t)) {
		t.Error("our terminal is not raw")
	}
	s.types(t, "Ada\r")
	res, err := end()
	if err != nil || res.ExitCode != 5 {
		t.Errorf("%+v %v", res, err)
	}
	s.sees(t, "<Ada>\r\n")
	for _, want := range []string{"all three\r\n", "33 101\r\n", "/dev/pts/", "name? Ada\r\n"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %q in %q", want, s)
		}
	}
	if !sameModes(before, s.modes(t)) {
		t.Error("our terminal was not restored")
	}
	if log := readAll(t, spec.Log); log != s.String() {
		t.Errorf("log %q, screen %q", log, s)
	}
}

func TestMuchOutputThroughATerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t)
	spec := s.spec(t, "seq 1 20000; echo the end")
	spec.Log = logOf(t)
	res, err := begin(t, spec)()
	if err != nil || res.ExitCode != 0 {
		t.Errorf("%+v %v", res, err)
	}
	s.sees(t, "20000\r\nthe end\r\n")
	if n := strings.Count(s.String(), "\r\n"); n != 20001 || strings.Count(readAll(t, spec.Log), "\n") != 20001 {
		t.Errorf("%d lines", n)
	}
}

func TestCtrlCThroughTheTerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t)
	spec := s.spec(t, "trap 'echo got INT' INT; echo ready; while ! [ -e stop ]; do sleep 0.05; done; exit 4")
	end := begin(t, spec)
	s.sees(t, "ready")
	s.types(t, "\x03")
	s.sees(t, "got INT")
	if err := os.WriteFile(filepath.Join(spec.Dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := end()
	if err != nil || res.ExitCode != 4 || res.Interrupted != nil || strings.Count(s.String(), "got INT") != 1 {
		t.Errorf("%+v %v %q", res, err, s)
	}
	// Without a trap it ends the program.
	s2 := openScreen(t)
	end = begin(t, s2.spec(t, "echo ready; exec sleep 1000"))
	s2.sees(t, "ready")
	s2.types(t, "\x03")
	if res, err = end(); err != nil || res.ExitCode != 130 || res.Signal != "SIGINT" {
		t.Errorf("%+v %v", res, err)
	}
}

func TestJobControl(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	s := openScreen(t)
	spec := s.spec(t, "exec bash --norc --noprofile -i")
	spec.Env = append(spec.Env, "PS1=prompt> ", "HISTFILE=")
	end := begin(t, spec)
	s.sees(t, "prompt>")
	s.types(t, "sleep 1000\r")
	s.sees(t, "sleep 1000\r\n")
	// Typed until the shell has put the job in front.
	waitFor(t, "a stopped job", func() bool {
		s.types(t, "\x1a")
		time.Sleep(50 * time.Millisecond)
		return strings.Contains(s.String(), "Stopped")
	})
	// Of a stopped job bash's wait returns at once, and exit refuses while it is one.
	s.types(t, "jobs; bg; kill %1; wait %1; echo ended as $?\r")
	s.sees(t, "ended as 143")
	s.types(t, "exit 3\r")
	res, err := end()
	if err != nil || res.ExitCode != 3 {
		t.Errorf("%+v %v %q", res, err, s)
	}
}

func TestWindowSizeFollows(t *testing.T) {
	t.Parallel()
	s := openScreen(t)
	signals := make(chan os.Signal)
	spec := s.spec(t, "trap 'stty size' WINCH; echo ready; while ! [ -e stop ]; do sleep 0.05; done")
	spec.Signals = signals
	end := begin(t, spec)
	s.sees(t, "ready")
	if err := pty.Setsize(s.keys, &pty.Winsize{Rows: 12, Cols: 34}); err != nil {
		t.Fatal(err)
	}
	signals <- syscall.SIGWINCH
	s.sees(t, "12 34")
	if err := os.WriteFile(filepath.Join(spec.Dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err := end(); err != nil || res.ExitCode != 0 {
		t.Errorf("%+v %v", res, err)
	}
}

func TestTheTerminalIsRestoredAfterEveryEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Spec){
		"timeout": func(s *Spec) {
			s.Args[2] = "stty raw -echo; trap '' TERM HUP; sleep 1000; sleep 1000"
			s.Timeout = 300 * time.Millisecond
		},
		"killed":    func(s *Spec) { s.Args[2] = "stty raw -echo; kill -9 $$" },
		"not found": func(s *Spec) { s.Args = []string{"nothing-like-it"} },
		"no format": func(s *Spec) {
			s.Args = []string{"./x"}
			_ = os.WriteFile(filepath.Join(s.Dir, "x"), []byte("x"), 0o755)
		},
		"inherited": func(s *Spec) { s.Args[2], s.Stdout = "stty raw -echo <&0; kill -9 $$", &lockedBuffer{} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openScreen(t)
			before := s.modes(t)
			spec := s.spec(t, "")
			spec.Grace = 200 * time.Millisecond
			change(&spec)
			_, _ = begin(t, spec)()
			if !sameModes(before, s.modes(t)) {
				t.Error("not restored")
			}
		})
	}
}

func TestMixedStreams(t *testing.T) {
	t.Parallel()
	const script = `r=; for fd in 0 1 2; do [ -t $fd ] && r="$r$fd"; done; echo "tty on <$r>" >> where; echo out; echo err >&2; cat`
	tests := map[string]struct {
		change func(*Spec)
		where  string
		screen string
	}{
		"output into a file": {func(s *Spec) { s.Stdout = &lockedBuffer{} }, "02", "err\r\n"},
		"input from a file":  {func(s *Spec) { s.Stdin = strings.NewReader("in\n") }, "12", "out\r\nerr\r\nin\r\n"},
		"only stderr":        {func(s *Spec) { s.Stdin, s.Stdout = nil, &lockedBuffer{} }, "2", "err\r\n"},
		"stderr into a file": {func(s *Spec) { s.Stderr = &lockedBuffer{} }, "01", "out\r\n"},
		"always":             {func(s *Spec) { s.TTY, s.Stdin = true, strings.NewReader("in\n") }, "012", "err\r\r\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openScreen(t)
			spec := s.spec(t, script)
			tt.change(&spec)
			end := begin(t, spec)
			if _, ok := spec.Stdin.(*os.File); ok {
				s.sees(t, strings.SplitAfter(tt.screen, "\n")[0])
				s.types(t, "\x04")
			}
			if res, err := end(); err != nil || res.ExitCode != 0 {
				t.Errorf("%+v %v", res, err)
			}
			if got := readAll(t, filepath.Join(spec.Dir, "where")); got != "tty on <"+tt.where+">\n" {
				t.Error(got)
			}
			s.sees(t, tt.screen)
		})
	}
}

func TestTerminalForAProgramThatHasNone(t *testing.T) {
	t.Parallel()
	in, err := os.Open(writeTemp(t, "line one\nunfinished"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	spec := shell(t, "stty size; cat; echo; exit 2")
	spec.TTY, spec.Stdin = true, in
	res, out, _, err := output(t, spec)
	if err != nil || res.ExitCode != 2 || !strings.Contains(out, "24 80\r\n") || strings.Count(out, "unfinished") != 2 {
		t.Errorf("%+v %q %v", res, out, err)
	}
}

func TestInheritedTerminalGetsCtrlCOnce(t *testing.T) {
	t.Parallel()
	// The program is not in our process group, so a Ctrl-C that the kernel sends
	// there reaches it only by being passed on.
	spec := shell(t, `n=0; trap 'n=$((n+1))' INT; echo ready; while ! [ -e stop ]; do sleep 0.05; done; echo "$n times"`)
	s := openScreen(t)
	spec.Stdin = s.tty
	signals := make(chan os.Signal)
	spec.Signals = signals
	spec.Grace = 2 * liveness
	var out lockedBuffer
	spec.Stdout = &out
	end := begin(t, spec)
	waitFor(t, "ready", func() bool { return strings.Contains(out.String(), "ready") })
	signals <- syscall.SIGINT
	time.Sleep(200 * time.Millisecond)
	if err := os.WriteFile(filepath.Join(spec.Dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := end()
	if err != nil || res.Interrupted != syscall.SIGINT || !strings.Contains(out.String(), "1 times") {
		t.Errorf("%+v %v %q", res, err, out.String())
	}
}

func writeTemp(t *testing.T, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}
