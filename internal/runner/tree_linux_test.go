package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// twice adds each script once more, to be run without a cgroup.
func twice(scripts map[string]string) map[string]string {
	both := maps.Clone(scripts)
	for name, script := range scripts {
		both[name+", no cgroup"] = script
	}
	return both
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"obeys TERM":         "echo $$ > a; exec sleep 1000",
		"ignores TERM":       "trap '' TERM; echo $$ > a; sleep 1000; sleep 1000",
		"exits 0 on TERM":    "trap 'exit 0' TERM; echo $$ > a; sleep 1000 & wait",
		"stopped":            "echo $$ > a; kill -STOP $$",
		"grandchild ignores": "trap '' TERM; sh -c 'echo $$ > a; sleep 1000; sleep 1000'",
		"set-sid'ed":         "setsid sh -c 'trap \"\" TERM; echo $$ > a; sleep 1000' & sleep 1000",
		"double fork":        "(setsid sh -c '(trap \"\" TERM; sh -c \"echo \\$\\$ > a; exec sleep 1000\") & ' &) ; sleep 1000",
	}
	for name, script := range twice(tests) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := shell(t, script)
			spec.noCgroup = strings.HasSuffix(name, "no cgroup")
			spec.Timeout, spec.Grace = 300*time.Millisecond, 200*time.Millisecond
			res, _, _, err := output(t, spec)
			if err != nil || res.ExitCode != 124 || !res.TimedOut {
				t.Errorf("%+v %v", res, err)
			}
			if f := filepath.Join(spec.Dir, "a"); written(f) && !gone(t, f) {
				t.Error("lives on")
			}
		})
	}
}

func TestTimeoutLetsTheProgramTidyUp(t *testing.T) {
	t.Parallel()
	spec := shell(t, "trap 'echo tidy; exit 9' TERM; echo ready; sleep 1000 & wait")
	spec.Timeout = 200 * time.Millisecond
	res, out, _, err := output(t, spec)
	if err != nil || out != "ready\ntidy\n" || res.ExitCode != 124 {
		t.Errorf("%+v %q %v", res, out, err)
	}
}

func TestWhatIsLeftBehindIsEnded(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"background":   "sleep 1000 & echo $! > a",
		"nohup":        "nohup sleep 1000 >/dev/null 2>&1 & echo $! > a",
		"holds pipe":   "(trap '' TERM HUP; sleep 1000) & echo $! > a",
		"setsid":       "setsid sleep 1000 & echo $! > a",
		"daemon":       "(setsid sh -c 'sleep 1000 & echo $! > a' >/dev/null 2>&1 </dev/null &); while ! [ -s a ]; do sleep 0.01; done",
		"ignores TERM": "setsid sh -c 'trap \"\" TERM; echo $$ > a; while :; do sleep 1; done' & while ! [ -s a ]; do sleep 0.01; done",
		"stopped":      "sh -c 'echo $$ > a; kill -STOP $$' & while ! [ -s a ]; do sleep 0.01; done",
	}
	for name, script := range twice(tests) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := shell(t, script+"; echo done; exit 6")
			spec.noCgroup = strings.HasSuffix(name, "no cgroup")
			spec.Grace = 300 * time.Millisecond
			res, out, _, err := output(t, spec)
			if err != nil || res.ExitCode != 6 || out != "done\n" {
				t.Errorf("%+v %q %v", res, out, err)
			}
			a := filepath.Join(spec.Dir, "a")
			waitFor(t, "the end of what was left behind", func() bool { return gone(t, a) })
			named := false
			for _, p := range res.Survivors {
				named = named || p.PID == pidIn(t, a)
				if p.Alive || len(p.Args) == 0 || p.Args[0] == "" {
					t.Errorf("survivor %+v", p)
				}
			}
			// Without a control group nothing tells whose a daemon is once its parents
			// have ended: another run that ends in that moment may end and name it.
			if !named && name != "daemon, no cgroup" {
				t.Errorf("not named: %+v", res.Survivors)
			}
		})
	}
}

func TestWhatEndsByItselfIsNoSurvivor(t *testing.T) {
	t.Parallel()
	spec := shell(t, "(sleep 0.02; echo late) & exit 0")
	res, out, _, err := output(t, spec)
	// On a machine that is busy enough it is ended, and then it is named.
	if byItself := out == "late\n"; err != nil || byItself != (res.Survivors == nil) {
		t.Errorf("%+v %q %v", res, out, err)
	}
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	for _, noCgroup := range []bool{false, true} {
		t.Run(fmt.Sprint("no cgroup ", noCgroup), func(t *testing.T) {
			t.Parallel()
			forkBomb(t, noCgroup)
		})
	}
}

func forkBomb(t *testing.T, noCgroup bool) {
	spec := helperSpec(t, "bomb:5") // 63 processes in many sessions
	spec.noCgroup = noCgroup
	spec.Timeout, spec.Grace = 500*time.Millisecond, 100*time.Millisecond
	spec.Marker = "BOMB=" + spec.Dir
	res, _, _, err := output(t, spec)
	if err != nil || res.ExitCode != 124 {
		t.Errorf("%+v %v", res, err)
	}
	for pid := range allProcs() {
		if has, _ := hasEnv(pid, spec.Marker); has {
			t.Errorf("%d lives on", pid)
		}
	}
}

func TestSecondSignalShortensTheGrace(t *testing.T) {
	t.Parallel()
	spec := shell(t, "trap '' INT TERM; echo ready; sleep 1000; sleep 1000")
	spec.Grace = 2 * liveness
	signals := make(chan os.Signal)
	spec.Signals = signals
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	spec.Stdout = pw
	go func() {
		_, _ = pr.Read(make([]byte, 10))
		for range 3 {
			signals <- syscall.SIGTERM
		}
	}()
	res, err := finished(t, spec)
	if err != nil || res.Interrupted != syscall.SIGTERM || res.ExitCode != 137 || res.TimedOut {
		t.Errorf("%+v %v", res, err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "hear:1")
	signals := make(chan os.Signal, 8) // so that nobody waits where the program has ended too early
	spec.Signals = signals
	spec.Grace = 2 * liveness
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	spec.Stdout = pw
	var heard []string
	all := make(chan struct{})
	go func() {
		defer close(all)
		lines := bufio.NewScanner(pr)
		lines.Scan()
		for _, s := range []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGHUP} {
			signals <- s
			if !lines.Scan() {
				return
			}
			heard = append(heard, lines.Text())
		}
	}()
	res, err := finished(t, spec)
	pw.Close()
	<-all
	if err != nil || res.ExitCode != 2 || res.Interrupted != syscall.SIGHUP {
		t.Errorf("%+v %v", res, err)
	}
	want := []string{"user defined signal 1", "user defined signal 2", "quit", "window changed", "continued", "hangup"}
	if !slices.Equal(heard, want) {
		t.Errorf("%q", heard)
	}
}

func TestManyRunsKeepApart(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			spec := shell(t, fmt.Sprintf("setsid sleep 1000 & (setsid sleep 1000 &); sleep 0.%d; echo %d; exit %d", i%5, i, i))
			spec.noCgroup = i%2 == 0
			res, out, _, err := output(t, spec)
			if err != nil || res.ExitCode != i || out != strconv.Itoa(i)+"\n" {
				t.Errorf("%d: %+v %q %v", i, res, out, err)
			}
			for _, p := range res.Survivors {
				if len(p.Args) != 2 || p.Args[0] != "sleep" {
					t.Errorf("%d: %+v", i, p)
				}
			}
			if len(res.Survivors) != 2 {
				t.Errorf("%d: survivors %+v", i, res.Survivors)
			}
		})
	}
	// Commands of other code run meanwhile and must neither be killed nor reaped.
	for range 30 {
		wg.Go(func() {
			if out, err := exec.Command("sh", "-c", "sleep 0.05; echo fine").Output(); err != nil || string(out) != "fine\n" {
				t.Errorf("%q %v", out, err)
			}
		})
	}
	wg.Wait()
}

// startSpared starts a child with a session of its own that no test's run takes
// for an orphan.
func startSpared(t *testing.T, c *exec.Cmd) {
	t.Helper()
	children.mu.Lock()
	defer children.mu.Unlock()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	children.trees[pid] = &tree{pid: pid, leaving: true}
	t.Cleanup(func() {
		children.mu.Lock()
		defer children.mu.Unlock()
		delete(children.trees, pid)
	})
}

func TestOrphansAreReapedWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	spec := shell(t, `i=0; while [ $i -lt 50 ]; do (setsid sh -c 'true & echo $! >> pids' &); i=$((i+1)); done
while [ "$(wc -l < pids)" -lt 50 ]; do sleep 0.01; done
for p in $(cat pids); do while [ -e /proc/$p ]; do sleep 0.01; done; done; echo reaped`)
	spec.Timeout = liveness
	res, out, errOut, err := output(t, spec)
	if err != nil || out != "reaped\n" {
		t.Errorf("%+v %q %q %v", res, out, errOut, err)
	}
}

// TestAlone runs in a process of its own: what it counts, the whole process has.
func TestAlone(t *testing.T) {
	if os.Getenv("RUNNER_ALONE") == "" {
		t.Parallel()
		c := exec.Command(os.Args[0], "-test.run=^TestAlone$", "-test.v", "-test.timeout=5m")
		c.Env = append(os.Environ(), "RUNNER_ALONE=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	t.Run("daemon without a trace", func(t *testing.T) {
		spec := shell(t, "(env -i setsid /bin/sh -c '/bin/sleep 1000 & echo $! > a' >/dev/null 2>&1 </dev/null &); while ! [ -s a ]; do sleep 0.01; done")
		spec.noCgroup, spec.Marker = true, ""
		res, _, _, err := output(t, spec)
		if err != nil || len(res.Survivors) != 1 || !gone(t, filepath.Join(spec.Dir, "a")) {
			t.Errorf("%+v %v", res, err)
		}
	})
	t.Run("the last run ends what nobody claims", func(t *testing.T) {
		var wg sync.WaitGroup
		var dirs [6]string
		for i := range dirs {
			spec := shell(t, "(env -i setsid /bin/sh -c '/bin/sleep 1000 & echo $! > a' >/dev/null 2>&1 </dev/null &); while ! [ -s a ]; do sleep 0.01; done")
			spec.noCgroup = i%2 == 0
			dirs[i] = spec.Dir
			wg.Go(func() {
				if res, _, _, err := output(t, spec); err != nil || res.ExitCode != 0 {
					t.Errorf("%+v %v", res, err)
				}
			})
		}
		wg.Wait()
		for _, dir := range dirs {
			if !gone(t, filepath.Join(dir, "a")) {
				t.Errorf("%s lives on", dir)
			}
		}
	})
	t.Run("no leaks", func(t *testing.T) {
		once := func() {
			spec := shell(t, "setsid sleep 1000 & echo x; echo y >&2; cat >/dev/null")
			spec.Stdin, spec.Log, spec.Grace = strings.NewReader("in"), logOf(t), 50*time.Millisecond
			if _, _, _, err := output(t, spec); err != nil {
				t.Error(err)
			}
			_, _ = Run(context.Background(), Spec{Args: []string{"nothing"}, Env: testEnv(), Log: spec.Log})
			_, _ = Run(context.Background(), Spec{Args: []string{"true"}, Env: testEnv(), Log: spec.Dir})
			bad := filepath.Join(spec.Dir, "bad")
			if err := os.WriteFile(bad, []byte("no format"), 0o755); err != nil {
				t.Error(err)
			}
			_, _ = Run(context.Background(), Spec{Args: []string{bad}, Env: testEnv(), Stdin: strings.NewReader("x"), TTY: true})
			_, _ = Run(context.Background(), Spec{Args: []string{"true"}, Env: testEnv(), Stdin: strings.NewReader("x"), TTY: true})
		}
		once()
		files, routines := openFiles(), goroutines()
		for range 5 {
			once()
		}
		waitFor(t, "as many goroutines as before", func() bool { return goroutines() <= routines })
		if n := openFiles(); n > files {
			t.Errorf("%d open files, %d before", n, files)
		}
		for pid, p := range allProcs() {
			if p.ppid == os.Getpid() {
				t.Errorf("%d is still our child: %+v", pid, p)
			}
		}
		dirs, _ := filepath.Glob(filepath.Join(OwnCgroup(), fmt.Sprintf("superqode-%d-*", os.Getpid())))
		if len(dirs) > 0 {
			t.Error(dirs)
		}
	})
}

// TestKillingSuperqodeKillsTheProgram is about a program that kills its parent.
func TestKillingSuperqodeKillsTheProgram(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("RUNNER_PARENT"); dir != "" {
		_, _ = Run(context.Background(), Spec{
			Args: []string{"sh", "-c", "echo $$ > a; sleep 1000 & echo $! > b; kill -9 $PPID; sleep 1000; sleep 1000"},
			Dir:  dir, Env: testEnv(), Marker: "RUN=" + dir,
		})
		return
	}
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestKillingSuperqodeKillsTheProgram$")
	c.Env = append(os.Environ(), "RUNNER_PARENT="+dir)
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatal(err)
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	waitFor(t, "the program's end", func() bool { return gone(t, a) || zombie(pidIn(t, a)) })
	if left, err := EndMarked("RUN=" + dir); err != nil || len(left) > 0 && left[0].Alive {
		t.Errorf("%+v %v", left, err)
	}
	waitFor(t, "the end of what it had started", func() bool { return gone(t, b) || zombie(pidIn(t, b)) })
}

func zombie(pid int) bool {
	p, ok := readProc(pid, make([]byte, 1024))
	return !ok || p.dead
}
