package coordinator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// child is a process of TestProcesses or TestKilledHolders. Its arguments are
// the table's folder, its own name and a number of rounds.
func child(job string, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%s: %q", job, args)
	}
	dir, name := args[0], args[1]
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	lock := filepath.Join(dir, name+".lock")
	unlock, err := lockfile.TryLock(lock)
	if err != nil {
		return err
	}
	defer unlock() // dropped, it would go with the next garbage collection
	table := OpenTable(dir)
	trace, err := os.OpenFile(filepath.Join(dir, "trace"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	ctx := context.Background()
	for n := range rounds {
		start := 1 + r.IntN(400)
		target := Target{KindFile, fmt.Sprintf("f%d", r.IntN(8)), Lines{start, start + r.IntN(20)}}
		if r.IntN(50) == 0 {
			target.Lines = Lines{}
		}
		q := Request{Owner: owner(name), Targets: []Target{target}, Holder: LockHolder(lock)}
		leases, err := table.Acquire(ctx, q, time.Minute)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		// One write of a short line with O_APPEND is whole, and in the order of what
		// the kernel saw: begin is written with the claim held, end before its release.
		fmt.Fprintf(trace, "begin %s %d %s\n", name, leases[0].Fence, target)
		if job == "hold" {
			fmt.Println("held")
			select {}
		}
		fmt.Fprintf(trace, "end %s %d %s\n", name, leases[0].Fence, target)
		if _, err := table.Release(ctx, q.Owner, q.Targets); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
	}
	return nil
}

func start(t *testing.T, job, dir, name string, rounds int) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir, name, strconv.Itoa(rounds))
	cmd.Env = append(os.Environ(), childEnv+"="+job)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// TestProcesses lets processes acquire, wait and release, and reads from their
// trace that none was lost, that no two claims overlapped and that the numbers
// of the grants are all different and grow.
func TestProcesses(t *testing.T) {
	t.Parallel()
	processes, rounds := 32, 200 // a lock that is missing in one of 1,000 updates is found in each run
	switch {
	case testing.Short():
		processes, rounds = 8, 50
	case raceDetector: // looks into each process alone, and takes ten times as long; make test runs it without as well
		rounds = 50
	}
	dir := t.TempDir()
	var children []*exec.Cmd
	for i := range processes {
		cmd, _ := start(t, "work", dir, fmt.Sprintf("p%d", i), rounds)
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	f, err := os.Open(filepath.Join(dir, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	held, fences, last, begins := map[string]Target{}, map[uint64]bool{}, map[string]uint64{}, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.SplitN(lines.Text(), " ", 4)
		name, what := words[1], target(t, words[3])
		fence, err := strconv.ParseUint(words[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if words[0] == "end" {
			delete(held, name)
			continue
		}
		begins++
		if fences[fence] || fence <= last[name] {
			t.Fatalf("%s: the number %d is not new", name, fence)
		}
		fences[fence], last[name] = true, fence
		for other, h := range held {
			if h.Overlaps(what) {
				t.Fatalf("%s got %s while %s had %s", name, what, other, h)
			}
		}
		held[name] = what
	}
	if begins != processes*rounds {
		t.Errorf("%d grants, want %d", begins, processes*rounds)
	}
	leases, waiters, err := OpenTable(dir).List(t.Context())
	if err != nil || len(leases)+len(waiters) > 0 {
		t.Errorf("left: %v %v %v", leases, waiters, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, waitFolder, "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestKilledHolders kills a process that holds a claim, and one that waits.
func TestKilledHolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := OpenTable(dir)
	everything := []Target{{KindDir, ".", Lines{}}}
	for range 5 {
		holder, out := start(t, "hold", dir, "victim", 1)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
			t.Fatal(line, err)
		}
		_, err := table.Acquire(t.Context(), Request{Owner: owner("me"), Targets: everything}, 0)
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || len(conflict.Held) != 1 || conflict.Held[0].Owner != owner("victim") {
			t.Fatalf("%v", err)
		}
		waiting, _ := start(t, "hold", dir, "waiting", 1) // may wait, or hold a part
		got := make(chan error, 1)
		go func() {
			_, err := table.Acquire(t.Context(), Request{Owner: owner("me"), Targets: everything}, time.Minute)
			got <- err
		}()
		for _, cmd := range []*exec.Cmd{waiting, holder} {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if _, err := table.Release(t.Context(), owner("me"), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProcessHolder ends a claim with the process that it names.
func TestProcessHolder(t *testing.T) {
	t.Parallel()
	table := OpenTable(t.TempDir())
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	holder, err := ProcessHolder(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Owner: owner("alice"), Targets: []Target{{KindFile, "a", Lines{}}}, Holder: holder}
	if _, err := table.Acquire(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
	bob := Request{Owner: owner("bob"), Targets: r.Targets}
	if _, err := table.Acquire(t.Context(), bob, 0); !errors.Is(err, superqode.ErrConflict) {
		t.Fatal(err)
	}
	if err := sleep.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Acquire(t.Context(), bob, time.Minute); err != nil { // a zombie holds nothing
		t.Fatal(err)
	}
	_ = sleep.Wait() // killed
	if _, err := ProcessHolder(sleep.Process.Pid); !errors.Is(err, superqode.ErrNotFound) {
		t.Error(err)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	table := OpenTable(t.TempDir())
	a := []Target{{KindFile, "a", Lines{}}}
	ask := func(name string, wait time.Duration) error {
		_, err := table.Acquire(t.Context(), Request{Owner: owner(name), Targets: a}, wait)
		return err
	}
	if err := ask("alice", 0); err != nil {
		t.Fatal(err)
	}
	if err := ask("bob", 20*time.Millisecond); !errors.Is(err, superqode.ErrConflict) || !strings.Contains(err.Error(), "alice") || !strings.Contains(err.Error(), "waited") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := table.Acquire(ctx, Request{Owner: owner("bob"), Targets: a}, -1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, waiters, err := table.List(t.Context()); err != nil || len(waiters) > 0 {
		t.Error(waiters, err)
	}
	var order []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 10 {
		name := fmt.Sprintf("w%d", i)
		wg.Go(func() {
			if err := ask(name, time.Minute); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			if _, err := table.Release(t.Context(), owner(name), nil); err != nil {
				t.Error(err)
			}
		})
		for n := -1; n <= i; { // one after the other into the queue
			_, waiters, err := table.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n = len(waiters)
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := table.Release(t.Context(), owner("alice"), nil); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if got := strings.Join(order, " "); got != "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9" {
		t.Error("served in the order", got)
	}
}

// TestBrokenBook refuses to grant anything from a file that cannot be believed.
func TestBrokenBook(t *testing.T) {
	t.Parallel()
	good := OpenTable(t.TempDir())
	r := Request{Owner: owner("alice"), Targets: []Target{{KindFile, "a", Lines{}}}}
	if _, err := good.Acquire(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good.path())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "cut": string(data[:len(data)/2]), "zeros": strings.Repeat("\x00", 200), "null": "null", "list": "[]", "no schema": "{}",
		"edited": strings.Replace(string(data), "alice", "malice", 1), "newer": strings.Replace(string(data), `:1,`, `:99,`, 1),
	} {
		table := OpenTable(t.TempDir())
		if err := os.WriteFile(table.path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, aerr := table.Acquire(t.Context(), r, time.Second)
		_, _, lerr := table.List(t.Context())
		_, rerr := table.Release(t.Context(), r.Owner, nil)
		for _, err := range []error{aerr, lerr, rerr} {
			if _, ok := errors.AsType[*BrokenError](err); !ok || superqode.Hint(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := table.Forget(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		leases, err := table.Acquire(t.Context(), r, 0)
		if err != nil || leases[0].Fence < 1<<40 {
			t.Errorf("%s: %v %v", name, leases, err)
		}
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	table := OpenTable(b.TempDir())
	r := Request{Owner: owner("alice"), Targets: []Target{{KindFile, "a", Lines{1, 2}}}}
	for b.Loop() {
		if _, err := table.Acquire(b.Context(), r, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := table.Release(b.Context(), r.Owner, r.Targets); err != nil {
			b.Fatal(err)
		}
	}
}
