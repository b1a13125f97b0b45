package codeexec_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/codeexec"
)

// start starts a shell script; at the end of the test nothing of it is left.
func start(t *testing.T, w *codeexec.Workspace, script string) *codeexec.ProgramSession {
	t.Helper()
	s, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if st := s.State(); st.Status != codeexec.ProgramExited || st.ExitCode == nil {
			t.Errorf("after Close: %+v", st)
		}
	})
	return s
}

// until yields until the output of all of them holds want.
func until(t *testing.T, s *codeexec.ProgramSession, want string) (poll codeexec.ProgramPoll) {
	t.Helper()
	all := ""
	for !strings.Contains(all, want) {
		poll = s.Yield(t.Context(), time.Minute, 0)
		all += poll.Output
		if poll.Status == codeexec.ProgramExited && !strings.Contains(all, want) {
			t.Fatalf("%q ended without %q: %+v", all, want, poll)
		}
	}
	return poll
}

// gone waits until a process is not there any more, or a zombie.
func gone(t *testing.T, pid string) {
	t.Helper()
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %s is alive: %s", pid, stat)
	}
}

// TestProgram talks with a program from its first line to its exit code.
func TestProgram(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	s, err := w.StartProgram(t.Context(), codeexec.Program{
		Args:  []string{"sh", "-c", `read first; echo "got $first in $PWD"; printf 'choose: '; read v; echo out:$v; echo err:$v >&2; cat; exit 7`},
		Stdin: []byte("early\n"), Cwd: "work"})
	if err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Status != codeexec.ProgramRunning || st.ExitCode != nil || s.ID() == "" {
		t.Errorf("%+v, %q", st, s.ID())
	}
	if poll := until(t, s, "choose: "); poll.Status != codeexec.ProgramRunning || poll.NextOffset != 1 || poll.ExitCode != nil {
		t.Errorf("%+v", poll)
	}
	if log := s.Log(0, 0); log.Output != "got early in "+filepath.Join(w.Dir.Root(), "work")+"\nchoose: " || log.Offset != 0 || log.NextOffset != 1 || log.Truncated {
		t.Errorf("%+v", log)
	}
	if err := s.Write(t.Context(), "7", true); err != nil {
		t.Fatal(err)
	}
	if poll := until(t, s, "err:7"); !strings.Contains(poll.Output, "7") || poll.Status != codeexec.ProgramRunning {
		t.Errorf("%+v", poll)
	}
	if err := errors.Join(s.Write(t.Context(), "last, without an end", false), s.Write(t.Context(), "", false)); err != nil {
		t.Fatal(err)
	}
	s.CloseStdin()
	s.CloseStdin()
	if err := s.Write(t.Context(), "x", true); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after CloseStdin: %v", err)
	}
	<-s.Done()
	if poll := s.Poll(0); poll.Status != codeexec.ProgramExited || poll.ExitCode == nil || *poll.ExitCode != 7 {
		t.Errorf("%+v", poll)
	}
	if err := s.Write(t.Context(), "x", true); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	res, err := s.Result()
	if err != nil || res.ExitCode != 7 || res.Stderr != "err:7\n" || !strings.HasSuffix(res.Stdout, "choose: out:7\nlast, without an end") {
		t.Errorf("%+v, %v", res, err)
	}
	if err := errors.Join(s.Kill(0), s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if log := s.Log(1, 0); log.NextOffset != 4 || !strings.HasSuffix(log.Output, "\nlast, without an end") {
		t.Errorf("after Close: %+v", log)
	}
}

// TestProgramLines holds what is read by line, and that Log and Poll do not disturb one another.
func TestProgramLines(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	s := start(t, w, `printf '\none\r\ntwo\n\nthree'; read x`)
	until(t, start(t, w, `echo beside`), "beside")
	for s.Log(0, 0).Output != "\none\ntwo\n\nthree" {
		runtime.Gosched()
	}
	for _, c := range []struct {
		offset, limit int
		want          string
		next          int
	}{{0, 1, "", 1}, {1, 1, "one", 2}, {1, 2, "one\ntwo", 3}, {-5, 2, "\none", 2}, {3, 0, "\nthree", 4}, {2, -1, "two\n\nthree", 4}, {4, 1, "three", 4}, {1 << 40, 1, "three", 4}} {
		if log := s.Log(c.offset, c.limit); log.Output != c.want || log.NextOffset != c.next {
			t.Errorf("Log(%d, %d): %+v", c.offset, c.limit, log)
		}
	}
	for i, want := range []string{"\none", "two\n\nthree", "three", "three"} {
		if poll := s.Poll([]int{2, 2, 2, 0}[i]); poll.Output != want {
			t.Errorf("poll %d: %+v", i, poll)
		}
	}
	if poll := s.Yield(t.Context(), 0, 0); poll.Output != "three" || poll.Status != codeexec.ProgramRunning {
		t.Errorf("%+v", poll)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if poll := s.Yield(ctx, time.Hour, 0); poll.Status != codeexec.ProgramRunning {
		t.Errorf("%+v", poll)
	}
	s.CloseStdin()
	if poll := s.Yield(t.Context(), time.Hour, 0); poll.Status != codeexec.ProgramExited || poll.Output != "three" || poll.NextOffset != 5 {
		t.Errorf("%+v", poll)
	}
	if poll := s.Poll(0); poll.Output != "" || poll.Offset != 5 || poll.NextOffset != 5 {
		t.Errorf("%+v", poll)
	}
}

// TestProgramTerminal holds that a program can have a terminal.
func TestProgramTerminal(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	s, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"sh", "-c", `test -t 0 && test -t 2 && printf 'choose: '; read v; echo tty:$v; cat; echo over >&2`}, TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, "choose: ")
	if err := s.Write(t.Context(), "7", true); err != nil {
		t.Fatal(err)
	}
	until(t, s, "tty:7")
	s.CloseStdin()
	until(t, s, "over")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestProgramBad holds what cannot be started, and that it leaves nothing.
func TestProgramBad(t *testing.T) {
	t.Parallel()
	r, w := acquire(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		p    codeexec.Program
		want error
	}{
		"none": {t.Context(), codeexec.Program{}, superqode.ErrUsage}, "cwd": {t.Context(), codeexec.Program{Args: []string{"true"}, Cwd: "../x"}, nil},
		"no folder": {t.Context(), codeexec.Program{Args: []string{"true"}, Cwd: "nowhere"}, superqode.ErrUsage},
		"not there": {t.Context(), codeexec.Program{Args: []string{"no-such-program"}}, nil},
		"cancelled": {cancelled, codeexec.Program{Args: []string{"true"}}, context.Canceled},
	} {
		if s, err := w.StartProgram(c.ctx, c.p); err == nil || s != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if err := r.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if _, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"true"}}); err == nil {
		t.Error("a program was started in a workspace that is released")
	}
}

// TestProgramDeaf holds that a program that does not read keeps nobody waiting longer than asked.
func TestProgramDeaf(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	much := strings.Repeat("x", 1<<20)
	s := start(t, w, `echo up; while [ ! -e work/read ]; do sleep 0.01; done; wc -c`)
	until(t, s, "up")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Write(ctx, much, false); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "of 1048576 bytes") {
		t.Errorf("%v", err)
	}
	var waiting sync.WaitGroup // writers wait for one another, and one that gives up takes nothing from the next
	for range 8 {
		waiting.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			if err := s.Write(ctx, much, false); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
	waiting.Wait()
	if err := w.Dir.Write(t.Context(), "work/read", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), much, false); err != nil {
		t.Error(err)
	}
	s.CloseStdin()
	<-s.Done()
	if res, err := s.Result(); err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}

	closes := start(t, w, `exec <&-; echo closed; exec sleep 1000`)
	until(t, closes, "closed")
	if err := closes.Write(t.Context(), much, true); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v", err)
	}
	waits := start(t, w, `exec sleep 1000`)
	failed := make(chan error)
	go func() { failed <- waits.Write(t.Context(), much, false) }()
	if err := waits.Kill(0); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a write to what was killed: %v", err)
	}
}

// TestProgramTree holds that what a program forked away ends with it: by Kill, by Close, by
// the end of the context and by its own end.
func TestProgramTree(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	const daemon = `trap '' TERM HUP; setsid sh -c 'trap "" TERM HUP; (trap "" TERM HUP; echo daemon $$; exec sleep 1000) & sleep 1000' & `
	pid := func(s *codeexec.ProgramSession) string {
		until(t, s, "daemon ")
		_, rest, _ := strings.Cut(s.Log(0, 0).Output, "daemon ")
		return strings.Fields(rest)[0]
	}
	for name, end := range map[string]func(s *codeexec.ProgramSession, cancel func()){
		"kill":   func(s *codeexec.ProgramSession, _ func()) { _ = s.Kill(10 * time.Millisecond) },
		"close":  func(s *codeexec.ProgramSession, _ func()) { _ = s.Close() },
		"cancel": func(_ *codeexec.ProgramSession, cancel func()) { cancel() },
		"exit":   func(s *codeexec.ProgramSession, _ func()) { s.CloseStdin() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := w.StartProgram(ctx, codeexec.Program{Args: []string{"sh", "-c", daemon + "read x; exit 3"}})
			if err != nil {
				t.Fatal(err)
			}
			p := pid(s)
			end(s, cancel)
			<-s.Done()
			gone(t, p)
			res, err := s.Result()
			if name == "cancel" && !errors.Is(err, context.Canceled) || name != "cancel" && err != nil || name == "exit" && res.ExitCode != 3 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	s, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"sleep", "1000"}, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if res, err := s.Result(); err != nil || !res.TimedOut || res.ExitCode != 124 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestProgramFlood holds that what is kept of endless output is bounded, in lines and in one line.
func TestProgramFlood(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	s := start(t, w, `seq 4000000; head -c 40000000 /dev/zero | tr '\0' x; echo; echo last`)
	<-s.Done()
	poll := s.Poll(0)
	if !poll.Truncated || !strings.HasSuffix(poll.Output, "xxx\nlast") || len(poll.Output) > 2*codeexec.MaxTranscript || len(poll.Output) < codeexec.MaxTranscript || poll.NextOffset != 4000002 || poll.Offset != 4000000 {
		t.Errorf("%d bytes, %d to %d, %v", len(poll.Output), poll.Offset, poll.NextOffset, poll.Truncated)
	}
	if res, err := s.Result(); err != nil || !res.Truncated || len(res.Stdout) != codeexec.MaxOutput || !strings.HasPrefix(res.Stdout, "1\n2\n") {
		t.Errorf("%d bytes, %v, %v", len(res.Stdout), res.Truncated, err)
	}
	lines := start(t, w, `seq 4000000`)
	<-lines.Done()
	first := lines.Log(0, 1)
	if first.Output != strconv.Itoa(first.Offset+1) || !first.Truncated || first.Offset == 0 {
		t.Errorf("%+v", first)
	}
	if log := lines.Log(3999990, 2); log.Output != "3999991\n3999992" {
		t.Errorf("%+v", log)
	}
}

// TestProgramsAtOnce runs twenty beside one another, and beside Run, and sees nothing left.
func TestProgramsAtOnce(t *testing.T) {
	r, w := acquire(t)
	<-start(t, w, "true").Done() // the first one starts what listens to signals, for good
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			s, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"sh", "-c", "echo up; cat; sleep 1000"}})
			if err != nil {
				t.Error(err)
				return
			}
			want := fmt.Sprintf("line of %d", i)
			all := sync.WaitGroup{}
			all.Go(func() {
				if err := s.Write(t.Context(), want, true); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { s.Log(0, 0); s.State(); _, _ = s.Result() })
			for !strings.Contains(s.Log(0, 0).Output, want) {
				s.Yield(t.Context(), time.Minute, 1)
			}
			all.Wait()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if out := s.Log(0, 0).Output; out != "up\n"+want && out != want+"\nup" {
				t.Errorf("%q", out)
			}
		})
	}
	for range 3 {
		if res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"echo", "run"}}); err != nil || res.Stdout != "run\n" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	all.Wait()
	for i := 0; runtime.NumGoroutine() > before && i < 1000; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
	if err := r.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

// programChild is the variable that makes the test binary start a program with a daemon, print
// the daemon's number and wait.
const programChild = "CODEEXEC_TEST_PROGRAM"

func startAndWait(dir string) {
	w, err := registry(dir).Acquire(context.Background(), "one")
	if err != nil {
		panic(err)
	}
	s, err := w.StartProgram(context.Background(), codeexec.Program{Args: []string{"sh", "-c",
		`trap '' TERM HUP; setsid sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' & cat`}})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Yield(context.Background(), time.Minute, 0).Output)
	<-s.Done()
}

// TestProgramKilled holds that of a process that was killed with a program in its workspace
// nothing is left when the workspace is acquired again.
func TestProgramKilled(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	embedder := exec.Command(os.Args[0])
	embedder.Env = append(os.Environ(), child+"="+dir, programChild+"=1")
	out, err := embedder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := embedder.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := embedder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = embedder.Wait() // killed
	r := registry(dir)
	w, err := r.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	s, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"echo", "again"}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, "again")
	if err := errors.Join(s.Close(), r.Release(t.Context(), "one")); err != nil {
		t.Error(err)
	}
}

// TestProgramReleased holds that a workspace is not taken away under a program.
func TestProgramReleased(t *testing.T) {
	t.Parallel()
	r, w := acquire(t)
	s := start(t, w, "echo up; read x")
	until(t, s, "up")
	if err := r.Release(t.Context(), "one"); !errors.Is(err, superqode.ErrLocked) || !codeexec.IsRetrySafe(err) {
		t.Errorf("%v", err)
	}
	if err := syscall.Access(w.Dir.Root(), 0); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

// TestRegistryHurry holds that workspaces may be acquired, used, let go and released by many at
// once: each call succeeds or says who was first.
func TestRegistryHurry(t *testing.T) {
	t.Parallel()
	r := registry(scratch(t))
	if _, err := r.Acquire(t.Context(), "\xff"); !errors.Is(err, superqode.ErrUsage) { // no session of that name would be found again
		t.Errorf("%v", err)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			w, err := r.Acquire(t.Context(), "../one\n")
			if err != nil {
				t.Error(err)
				return
			}
			switch i % 4 {
			case 0:
				_, err = w.Run(t.Context(), codeexec.Program{Args: []string{"true"}})
			case 1:
				var s *codeexec.ProgramSession
				if s, err = w.StartProgram(t.Context(), codeexec.Program{Args: []string{"cat"}}); err == nil {
					err = s.Close()
				}
			case 2:
				err = r.Release(t.Context(), "../one\n")
			case 3:
				err = r.Close(t.Context(), "../one\n")
			}
			if err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, superqode.ErrNotFound) && !errors.Is(err, superqode.ErrLocked) {
				t.Errorf("%d: %v", i%4, err)
			}
		})
	}
	all.Wait()
	w, err := r.Acquire(t.Context(), "../one\n")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"echo", "still"}}); err != nil || res.Stdout != "still\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := r.Release(t.Context(), "../one\n"); err != nil {
		t.Error(err)
	}
}
