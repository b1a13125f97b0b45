package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run is one Run under way. All its fields belong to the goroutine of watch.
type run struct {
	spec Spec
	path string
	res  *Result
	st   *streams
	tree *tree

	ended  bool      // the program itself has ended
	killAt time.Time // when KILL begins; zero: not ending yet
	leftAt time.Time // when what is left behind is named and gets TERM
	urge   int       // how many ending signals came
	cause  error     // of ctx's end
	disk   *diskWatch
}

// samplePause is the time between two looks at what the tree uses.
const samplePause = 50 * time.Millisecond

func (r *run) run(ctx context.Context, res *Result) (err error) {
	// A broken stdout must not kill this process before it has ended the tree:
	// Go dies of EPIPE on descriptors 1 and 2 unless somebody listens. The
	// program would inherit an ignored signal.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	job, leave := r.join()
	defer leave()
	if r.st, err = openStreams(r.spec); err != nil {
		return err
	}
	defer func() {
		r.st.close()
		res.LogErr = r.st.log.close()
	}()
	if r.spec.Limits.Disk > 0 {
		r.disk = watchDisk(r.spec.Limits)
	}
	res.Started = time.Now()
	if r.tree, err = startTree(r.path, r.spec, r.st.child[:], r.st.ctty); err != nil {
		res.Started = time.Time{}
		if cerr, ok := errors.AsType[*ConfineError](err); ok {
			return cerr
		}
		if lerr, ok := errors.AsType[*LimitError](err); ok {
			return lerr
		}
		err = execError(r.spec.Args[0], err)
		if serr, ok := errors.AsType[*StartError](err); ok {
			res.ExitCode = serr.Code
		}
		return err
	}
	res.PID, res.Holdings = r.tree.pid, r.tree.hold.list()
	if r.disk != nil {
		r.disk.start()
		defer r.disk.cancel()
	}
	if r.st.keys != nil {
		r.st.keys.stops = r.stopKey
	}
	r.st.start()
	if r.spec.Started != nil {
		r.spec.Started(r.tree.pid)
	}
	r.watch(ctx, job)
	leave()
	err = r.drain(ctx)
	return errors.Join(r.cause, err, r.finish(res))
}

// finish takes the program's status and fills the result.
func (r *run) finish(res *Result) error {
	defer func() {
		res.Ended = time.Now()
		res.Stdout = r.st.sinks[0].result()
		if r.st.sinks[1] != r.st.sinks[0] {
			res.Stderr = r.st.sinks[1].result()
		}
		res.Truncated = res.Stdout.Truncated || res.Stderr.Truncated
	}()
	if !r.ended {
		r.tree.abandon()
		return fmt.Errorf("%q: %w", r.spec.Args[0], ErrLeftOver)
	}
	r.lastLook(res)
	ws, err := r.tree.finish()
	if err != nil {
		return fmt.Errorf("wait for %q: %w", r.spec.Args[0], err)
	}
	res.ExitCode = ws.ExitStatus()
	if ws.Signaled() {
		res.ExitCode = 128 + int(ws.Signal())
		res.Signal = unix.SignalName(ws.Signal())
	}
	switch {
	case res.Limit != "":
		res.ExitCode = exitLimit
	case res.TimedOut:
		res.ExitCode = exitTimeout
	case slices.Contains(res.Hits, LimitPids) && res.ExitCode != 0 && !res.Killed:
		res.Limit = LimitPids
	}
	for _, p := range res.Survivors {
		if p.Alive {
			return fmt.Errorf("%q left %d (%s): %w", r.spec.Args[0], p.PID, p.Args[0], ErrLeftOver)
		}
	}
	return nil
}

// lastLook finds limits that were exceeded between the last look and the end.
func (r *run) lastLook(res *Result) {
	if r.spec.Limits.any() {
		res.Hits = r.tree.hold.hits()
	}
	if res.Limit != "" || res.TimedOut || res.Killed {
		return
	}
	if r.spec.Limits.any() {
		res.Limit = r.tree.hold.exceeded(r.tree)
	}
	if res.Limit == "" && r.disk != nil && r.disk.grown() {
		res.Limit = LimitDisk
	}
}

// limit ends the run because it has exceeded a limit: at once, since it would
// go on using more.
func (r *run) limit(name string) {
	if name == "" || r.res.Limit != "" || r.killing() {
		return
	}
	r.res.Limit = name
	r.killBy(0)
}

// watch returns when nothing of the tree is alive, or giveUp after killing
// began.
func (r *run) watch(ctx context.Context, job <-chan os.Signal) {
	timeout := make(<-chan time.Time)
	if r.spec.Timeout > 0 {
		t := time.NewTimer(r.spec.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	done, exited, kill := ctx.Done(), r.tree.exited, r.spec.Kill
	var sample <-chan time.Time
	var over <-chan struct{}
	if r.spec.Limits.any() {
		tick := time.NewTicker(samplePause)
		defer tick.Stop()
		sample = tick.C
	}
	if r.disk != nil {
		over = r.disk.over
	}
	pause := time.Millisecond
	for {
		next := time.Duration(-1)
		if r.ended || r.killing() {
			if r.step() {
				return
			}
			next = pause
			pause = min(pause*2, 50*time.Millisecond)
		}
		if !r.killAt.IsZero() && !r.killing() {
			if until := time.Until(r.killAt); next < 0 || until < next {
				next = max(until, 0)
			}
		}
		var wake <-chan time.Time
		if next >= 0 {
			wake = time.After(next)
		}
		select {
		case <-exited:
			exited, r.ended = nil, true
			timeout = nil // it came to its own end before
			if sample != nil {
				r.limit(r.tree.hold.exceeded(r.tree))
			}
			r.leftAt = time.Now().Add(settle)
			pause = time.Millisecond
		case s, ok := <-r.spec.Signals:
			if !ok {
				r.spec.Signals = nil
			}
			r.signal(s)
		case s := <-job:
			r.signal(s)
		case <-r.tree.stopped:
			if !r.killing() { // which stops it first
				r.stops()
			}
		case <-timeout:
			r.res.TimedOut = true
			r.wayDown()
		case <-done:
			done, r.cause = nil, context.Cause(ctx)
			r.wayDown()
		case grace := <-kill:
			r.res.Killed = true
			r.spec.Grace = grace
			r.wayDown()
		case <-sample:
			r.limit(r.tree.hold.exceeded(r.tree))
		case <-over:
			over = nil
			r.limit(LimitDisk)
		case <-wake:
		}
	}
}

func (r *run) killing() bool { return !r.killAt.IsZero() && !time.Now().Before(r.killAt) }

// wayDown sends TERM to the whole tree, and sets when KILL follows. CONT
// follows because a stopped process gets TERM only then.
func (r *run) wayDown() {
	r.tree.signal(syscall.SIGTERM)
	r.tree.signal(syscall.SIGCONT)
	r.killBy(r.spec.Grace)
}

func (r *run) killBy(d time.Duration) {
	if at := time.Now().Add(d); r.killAt.IsZero() || at.Before(r.killAt) {
		r.killAt = at
	}
}

// step ends the rest of the tree once the program has ended or is being killed;
// it reports whether everything has ended.
func (r *run) step() (over bool) {
	if r.ended {
		if r.tree.empty() {
			return !r.tree.doubtful() || !time.Now().Before(r.leftAt)
		}
		r.nameLeft()
	}
	if !r.killing() {
		return false
	}
	r.tree.kill()
	late := time.Since(r.killAt) >= giveUp
	if late || r.ended && r.tree.stuck() {
		r.nameAlive()
		return true
	}
	return false
}

// nameLeft records, once, which processes outlived the program, and sends them
// TERM.
func (r *run) nameLeft() {
	if r.res.Survivors != nil || !r.killing() && time.Now().Before(r.leftAt) {
		return
	}
	if r.res.Survivors = r.tree.survivors(); len(r.res.Survivors) == 0 {
		return
	}
	if r.killAt.IsZero() {
		r.killBy(min(leftGrace, r.spec.Grace))
	}
	if !r.killing() {
		r.tree.signal(syscall.SIGTERM)
		r.tree.signal(syscall.SIGCONT)
	}
}

// nameAlive marks what could not be ended.
func (r *run) nameAlive() {
	named := map[int]bool{}
	for i, p := range r.res.Survivors {
		named[p.PID] = true
		r.res.Survivors[i].Alive = r.tree.alive(p.PID)
	}
	for _, p := range r.tree.survivors() {
		if !named[p.PID] {
			p.Alive = true
			r.res.Survivors = append(r.res.Survivors, p)
		}
	}
}

// signal passes one signal on, and begins to end the tree if it is INT, TERM or
// HUP.
func (r *run) signal(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		if r.res.Interrupted == nil {
			r.res.Interrupted = s
		}
		r.urge++
		if !r.ended {
			r.tree.group(sig)
		}
		switch r.urge {
		case 1:
			r.killBy(r.spec.Grace)
		case 2:
			r.killBy(min(hurried, r.spec.Grace))
		default:
			r.killBy(0)
		}
	case syscall.SIGWINCH:
		r.st.resize(func() { r.tree.group(sig) })
	case syscall.SIGCONT:
		r.st.again()
		r.tree.group(sig)
	case syscall.SIGTSTP:
		r.suspend()
	case syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2:
		r.tree.group(sig)
	}
}

// drain passes on the rest of the output. It waits for a reader that does not
// read, as the program itself would have had to; but not for ever after a
// signal, a time-out or the end of ctx.
func (r *run) drain(ctx context.Context) error {
	give, stop := make(chan struct{}), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if r.drainWatch(ctx, stop) {
			close(give)
		}
	})
	err := r.st.drain(give)
	close(stop)
	watcher.Wait()
	return err
}

// drainWatch returns true when drain should give up the rest of the output.
func (r *run) drainWatch(ctx context.Context, stop <-chan struct{}) bool {
	var limit <-chan time.Time
	if r.res.TimedOut || r.res.Interrupted != nil || r.cause != nil {
		limit = time.After(max(r.spec.Grace, 5*drainTime))
	}
	for {
		select {
		case <-stop:
			return false
		case <-limit:
			return true
		case <-ctx.Done():
			if r.cause == nil {
				r.cause = context.Cause(ctx)
				return true
			}
			ctx = context.WithoutCancel(ctx)
		case s, ok := <-r.spec.Signals:
			switch {
			case !ok:
				r.spec.Signals = nil
			case s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP:
				if r.res.Interrupted == nil {
					r.res.Interrupted = s
				}
				return true
			}
		}
	}
}
