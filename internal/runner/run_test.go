package runner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, perm os.FileMode) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), perm); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("plain", "echo hi\n", 0o755)
	write("noexec", "#!/bin/sh\n", 0o644)
	write("badinterp", "#!/no/such/thing\n", 0o755)
	write("good", "#!/bin/sh\necho \"$0\" \"$PWD\"\nexit 7\n", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args   []string
		path   string // PATH instead of the usual one
		code   int
		signal string
		start  bool // a *StartError comes back
		says   string
	}{
		{args: []string{"true"}},
		{args: []string{"sh", "-c", "exit 3"}, code: 3},
		{args: []string{"sh", "-c", "exit 255"}, code: 255},
		{args: []string{"sh", "-c", "kill -9 $$"}, code: 137, signal: "SIGKILL"},
		{args: []string{"sh", "-c", "kill -TERM $$"}, code: 143, signal: "SIGTERM"},
		{args: []string{"sh", "-c", "kill -SEGV $$"}, code: 139, signal: "SIGSEGV"},
		{args: []string{"./good"}, code: 7},
		{args: []string{"folder/../good"}, code: 7},
		{args: []string{"good"}, path: dir, code: 7},
		{args: []string{"good"}, path: ".:/bin", code: 7},
		{args: []string{"good"}, path: ":/bin", code: 7},
		{args: []string{"good"}, code: 127, start: true, says: `cannot run "good": command not found in PATH`},
		{args: []string{"no-such-program"}, code: 127, start: true},
		{args: []string{""}, code: 127, start: true},
		{args: []string{"./nothing"}, code: 127, start: true, says: "no such file"},
		{args: []string{"plain/x"}, code: 127, start: true},
		{args: []string{"a\x00b"}, code: 127, start: true},
		{args: []string{"./folder"}, code: 126, start: true, says: "is a directory"},
		{args: []string{"folder"}, path: dir, code: 126, start: true},
		{args: []string{"./noexec"}, code: 126, start: true, says: "permission denied"},
		{args: []string{"noexec"}, path: dir + ":/bin", code: 126, start: true},
		{args: []string{"./plain"}, code: 126, start: true, says: "#!"},
		{args: []string{"./badinterp"}, code: 127, start: true, says: "interpreter"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			env := testEnv()
			if tt.path != "" {
				env = append(env, "PATH="+tt.path)
			}
			res, _, _, err := output(t, Spec{Args: tt.args, Dir: dir, Env: env})
			if res.ExitCode != tt.code || res.Signal != tt.signal {
				t.Errorf("exit code %d, signal %q, want %d, %q (%v)", res.ExitCode, res.Signal, tt.code, tt.signal, err)
			}
			serr, ok := errors.AsType[*StartError](err)
			if ok != tt.start || !ok && err != nil {
				t.Fatalf("error %v", err)
			}
			if ok && (serr.Code != tt.code || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("error %v with code %d, want %q", err, serr.Code, tt.says)
			}
			if res.Started.IsZero() != tt.start {
				t.Errorf("Started is %v", res.Started)
			}
		})
	}
}

func TestScriptSeesItsOwnNameAndDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s"), []byte("#!/bin/sh\necho \"$0|$PWD\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, out, _, err := output(t, Spec{Args: []string{"./s"}, Dir: dir, Env: testEnv("PWD=/elsewhere", "A=1", "A=2")})
	if err != nil || out != "./s|"+dir+"\n" {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestBadWorkspace(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), "/dev/null"} {
		res, err := Run(context.Background(), Spec{Args: []string{"true"}, Dir: dir, Env: testEnv()})
		if _, ok := errors.AsType[*StartError](err); err == nil || ok || res.ExitCode != 125 {
			t.Errorf("%s: %v, code %d", dir, err, res.ExitCode)
		}
	}
	if res, err := Run(context.Background(), Spec{}); err == nil || res.ExitCode != 125 {
		t.Errorf("no arguments: %v, %v", res, err)
	}
}

func TestStreamsAndLog(t *testing.T) {
	t.Parallel()
	spec := shell(t, "cat; printf err >&2; printf 'no newline'")
	spec.Stdin = strings.NewReader("in\x00\xff\n")
	spec.Log = logOf(t)
	res, out, errOut, err := output(t, spec)
	if err != nil || out != "in\x00\xff\nno newline" || errOut != "err" {
		t.Fatalf("%q %q %v", out, errOut, err)
	}
	log := readAll(t, spec.Log)
	if len(log) != len(out)+len(errOut) || !strings.Contains(log, "err") {
		t.Errorf("log %q", log)
	}
	if res.Stdout != (Stream{Bytes: 15, Logged: 15, Passed: 15}) || res.Stderr != (Stream{Bytes: 3, Logged: 3, Passed: 3}) {
		t.Errorf("%+v", res)
	}
	if st, _ := os.Stat(spec.Log); st.Mode().Perm() != 0o600 {
		t.Errorf("log has mode %v", st.Mode())
	}
}

func TestOneDestinationKeepsTheOrder(t *testing.T) {
	t.Parallel()
	spec := shell(t, "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done")
	f, err := os.Create(filepath.Join(t.TempDir(), "both"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	spec.Stdout, spec.Stderr, spec.Log = f, again, logOf(t)
	if _, err := finished(t, spec); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintln(&want, i)
	}
	if readAll(t, f.Name()) != want.String() || readAll(t, spec.Log) != want.String() {
		t.Error("order lost")
	}
}

func TestStdinKinds(t *testing.T) {
	t.Parallel()
	spec := shell(t, "cat")
	if _, out, _, err := output(t, spec); out != "" || err != nil {
		t.Errorf("nil stdin: %q %v", out, err)
	}
	f := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(f, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	spec.Stdin = in
	if _, out, _, err := output(t, spec); out != "from a file" || err != nil {
		t.Errorf("file stdin: %q %v", out, err)
	}
	// A reader that never ends must not hold Run up.
	pr, pw := io.Pipe()
	defer pw.Close()
	spec = shell(t, "exit 4")
	spec.Stdin = pr
	if res, _, _, err := output(t, spec); res.ExitCode != 4 || err != nil {
		t.Errorf("endless stdin: %v %v", res, err)
	}
}

func TestChildStreamsBlock(t *testing.T) {
	t.Parallel()
	_, out, _, err := output(t, helperSpec(t, "nonblock"))
	if out != "" || err != nil {
		t.Error(out, err)
	}
}

func TestLogIsCutAndOutputIsNot(t *testing.T) {
	t.Parallel()
	spec := shell(t, "printf 0123456789; printf abcdefghij >&2; printf more")
	spec.Log, spec.MaxOutput = logOf(t), 4
	res, out, errOut, err := output(t, spec)
	if err != nil || out != "0123456789more" || errOut != "abcdefghij" {
		t.Fatalf("%q %q %v", out, errOut, err)
	}
	log := readAll(t, spec.Log)
	if strings.Count(log, "is cut here, after 4 B]\n") != 2 || strings.Contains(log, "4567") || !strings.Contains(log, "0123\n") {
		t.Errorf("log %q", log)
	}
	if !res.Truncated || res.Stdout != (Stream{Bytes: 14, Logged: 4, Passed: 14, Truncated: true}) || !res.Stderr.Truncated {
		t.Errorf("%+v", res)
	}
	spec.MaxPassed = 3
	if _, out, _, _ := output(t, spec); out != "012" {
		t.Errorf("passed %q", out)
	}
}

func TestLogExactlyFullIsNotCut(t *testing.T) {
	t.Parallel()
	spec := shell(t, "printf 0123")
	spec.Log, spec.MaxOutput = logOf(t), 4
	res, _, _, err := output(t, spec)
	if log := readAll(t, spec.Log); log != "0123" || res.Truncated || err != nil {
		t.Errorf("%q %+v %v", log, res, err)
	}
}

func TestLogThatFailsDoesNotStopTheProgram(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	spec := shell(t, "echo out; exit 5")
	spec.Log = "/dev/full"
	res, out, _, err := output(t, spec)
	if res.ExitCode != 5 || out != "out\n" || err != nil || !errors.Is(res.LogErr, syscall.ENOSPC) {
		t.Errorf("%+v %q %v", res, out, err)
	}
}

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	const n = 200 << 20
	spec := helperSpec(t, fmt.Sprintf("flood:%d", n))
	sum, want := sha256.New(), sha256.New()
	line := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
	for range n / len(line) {
		want.Write(line)
	}
	spec.Stdout, spec.Log, spec.MaxOutput = sum, logOf(t), 1<<20
	res, err := finished(t, spec)
	if err != nil || res.Stdout.Bytes != n || !bytes.Equal(sum.Sum(nil), want.Sum(nil)) {
		t.Fatalf("%+v %v", res, err)
	}
}

// brokenWriter fails like a pipe whose reader went away.
type brokenWriter struct{ after int }

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.after -= len(p); b.after < 0 {
		return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	return len(p), nil
}

func TestBrokenPipeReachesTheProgram(t *testing.T) {
	t.Parallel()
	spec := Spec{Args: []string{"yes"}, Dir: t.TempDir(), Env: testEnv(), Stdout: &brokenWriter{100 << 10}}
	res, err := finished(t, spec)
	if res.Signal != "SIGPIPE" || res.ExitCode != 141 || err != nil {
		t.Errorf("%+v %v", res, err)
	}
	// A real pipe, and a program that takes EPIPE for an answer.
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr.Close()
	defer pw.Close()
	spec = shell(t, "trap '' PIPE; i=0; while echo x 2>/dev/null; do i=$((i+1)); done; exit 9")
	spec.Stdout = pw
	if res, err = finished(t, spec); res.ExitCode != 9 || err != nil {
		t.Errorf("%+v %v", res, err)
	}
}

func TestFullDiskIsReported(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	spec := shell(t, "echo x")
	spec.Stdout = full
	if _, err := finished(t, spec); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("not needed any more")
	spec := shell(t, "echo ready; sleep 1000")
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	spec.Stdout = pw
	go func() {
		_, _ = pr.Read(make([]byte, 10))
		cancel(why)
	}()
	res, err := Run(ctx, spec)
	if !errors.Is(err, why) || res.ExitCode != 143 || res.TimedOut {
		t.Errorf("%+v %v", res, err)
	}
	if res, err = Run(ctx, spec); !errors.Is(err, why) || !res.Started.IsZero() {
		t.Errorf("%+v %v", res, err)
	}
}

func TestResultTimes(t *testing.T) {
	t.Parallel()
	before := time.Now()
	res, _, _, err := output(t, shell(t, "sleep 0.05"))
	if err != nil || res.Started.Before(before) || res.Ended.Sub(res.Started) < 50*time.Millisecond || res.PID <= 0 {
		t.Errorf("%+v %v", res, err)
	}
}

func TestReaderThatDoesNotRead(t *testing.T) {
	t.Parallel()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	spec := shell(t, "head -c 150000 /dev/zero; echo > done; exit 3")
	spec.Stdout = pw
	signals := make(chan os.Signal)
	spec.Signals = signals
	go func() {
		for !written(filepath.Join(spec.Dir, "done")) {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		signals <- syscall.SIGINT
	}()
	res, err := finished(t, spec)
	if res.ExitCode != 3 || res.Interrupted != syscall.SIGINT || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v %v", res, err)
	}
	pr.Close()
	pw.Close()
}

func TestStrangerHoldsThePipe(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{false, true} {
		pr, pw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		if writes {
			wg.Go(func() {
				for {
					if _, err := pw.Write(make([]byte, 4096)); err != nil {
						return
					}
				}
			})
		} else if _, err := pw.WriteString("kept"); err != nil {
			t.Fatal(err)
		}
		out := &sink{to: &lockedBuffer{}, log: &logFile{}}
		s := &streams{log: out.log}
		s.addPump(pr, out)
		s.start()
		if err := s.drain(nil); err != nil {
			t.Error(err)
		}
		if n := out.bytes.Load(); !writes && n != 4 || n == 0 {
			t.Errorf("%d bytes", n)
		}
		pw.Close()
		wg.Wait()
	}
}

// An empty environment is one: the program gets nothing of ours.
func TestNoEnvironment(t *testing.T) {
	t.Parallel()
	_, out, _, err := output(t, Spec{Args: []string{"/usr/bin/env"}})
	if err != nil || out != "" {
		t.Errorf("%q %v", out, err)
	}
}
