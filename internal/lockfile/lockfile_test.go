package lockfile_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// TestMain doubles as another process that takes the lock named in the
// environment, says so on stdout and holds it until its stdin ends.
func TestMain(m *testing.M) {
	p := os.Getenv("LOCKFILE_TEST_HOLD")
	if p == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	if d, err := time.ParseDuration(os.Getenv("LOCKFILE_TEST_TIMEOUT")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	unlock, err := lockfile.Lock(ctx, p)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := unlock(); err != nil {
		os.Exit(1)
	}
	fmt.Println("unlocked")
	os.Exit(0)
}

type other struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

// start starts a process that takes the lock on p, or gives up after timeout.
func start(t *testing.T, p, timeout string) *other {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCKFILE_TEST_HOLD="+p, "LOCKFILE_TEST_TIMEOUT="+timeout)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &other{cmd, stdin, bufio.NewReader(stdout)}
}

// say returns the next line that the process prints.
func (o *other) say(t *testing.T) string {
	t.Helper()
	line, err := o.out.ReadString('\n')
	if err != nil {
		t.Fatalf("other process said %q, %v", line, err)
	}
	return line
}

// hold starts a process that holds the lock on p, and waits until it does.
func hold(t *testing.T, p string) *other {
	t.Helper()
	o := start(t, p, "")
	if line := o.say(t); line != "locked\n" {
		t.Fatalf("other process said %q", line)
	}
	return o
}

func TestTryLock(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "made", "on", "the", "way", "lock")
	unlock, err := lockfile.TryLock(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.TryLock(p); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("second lock in one process: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if unlock, err = lockfile.TryLock(p); err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Errorf("the lock file is gone: %v", err)
	}
}

func TestIsHeld(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	check := func(when string, want bool) {
		t.Helper()
		if held, err := lockfile.IsHeld(p); err != nil || held != want {
			t.Errorf("%s: held %v, %v", when, held, err)
		}
	}
	check("no file", false)
	if _, err := os.Stat(p); err == nil {
		t.Error("asking made the file")
	}
	o := hold(t, p)
	check("held by another process", true)
	_ = o.stdin.Close()
	if err := o.cmd.Wait(); err != nil {
		t.Error(err)
	}
	check("given back", false)
	unlock, err := lockfile.TryLock(p)
	if err != nil {
		t.Fatal(err)
	}
	check("held by this process", true)
	if err := unlock(); err != nil {
		t.Error(err)
	}
	check("given back here", false)
}

// TestBlocksInBothDirections holds that this process waits for the other and the
// other for this one, each until it gives up or is served.
func TestBlocksInBothDirections(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	o := hold(t, p)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := lockfile.Lock(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the other process holds it: %v", err)
	}
	_ = o.stdin.Close()
	unlock, err := lockfile.Lock(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if line := start(t, p, "20ms").say(t); !strings.Contains(line, context.DeadlineExceeded.Error()) {
		t.Errorf("while this process holds it the other said %q", line)
	}
	waiting := start(t, p, "")
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if line := waiting.say(t); line != "locked\n" {
		t.Errorf("after unlock the other process said %q", line)
	}
}

// TestDeathFreesTheLock holds that kill -9 of the holder is enough.
func TestDeathFreesTheLock(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	o := hold(t, p)
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unlock, err := lockfile.Lock(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// TestCancel holds that a waiter gives up with its context's cause, and that the
// lock it did not wait for is not kept by it afterwards.
func TestCancel(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockfile.TryLock(p)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	got := make(chan error, 1)
	go func() {
		_, err := lockfile.Lock(ctx, p)
		got <- err
	}()
	cancel(enough)
	if err := <-got; !errors.Is(err, enough) {
		t.Errorf("error is %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	unlock, err = lockfile.Lock(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.Lock(context.Background(), filepath.Join(file, "lock")); err == nil || errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("error is %v", err)
	}
}

// TestFairness holds that one lock is held by one at a time, and that each of
// many contenders gets its turns.
func TestFairness(t *testing.T) {
	t.Parallel()
	const contenders, turns = 16, 20
	p := filepath.Join(t.TempDir(), "lock")
	var holders, total atomic.Int32
	var wg sync.WaitGroup
	for range contenders {
		wg.Go(func() {
			for range turns {
				unlock, err := lockfile.Lock(context.Background(), p)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				total.Add(1)
				holders.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := total.Load(); n != contenders*turns {
		t.Errorf("%d turns, want %d", n, contenders*turns)
	}
}

// BenchmarkWorstWait reports how long the unluckiest of 32 contenders waited.
func BenchmarkWorstWait(b *testing.B) {
	p := filepath.Join(b.TempDir(), "lock")
	var worst atomic.Int64
	for b.Loop() {
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				start := time.Now()
				unlock, err := lockfile.Lock(context.Background(), p)
				if err != nil {
					b.Error(err)
					return
				}
				worst.Store(max(worst.Load(), int64(time.Since(start))))
				if err := unlock(); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(worst.Load())/1e6, "ms-worst")
}

func TestShareWaits(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "lock")
	one, err := lockfile.Share(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	two, err := lockfile.Share(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.TryLock(p); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("locked beside two that share: %v", err)
	}
	if err := errors.Join(one(), two()); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockfile.Lock(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		unlock, err := lockfile.Share(context.Background(), p)
		if err == nil {
			err = unlock()
		}
		got <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := lockfile.Share(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shared what is locked: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}
