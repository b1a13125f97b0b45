package life

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// doing is the step that an ending takes now.
type doing struct {
	limit time.Duration // of collecting and describing
	left  time.Duration // of it
	again string        // how to collect what was not collected

	mu    sync.Mutex
	what  string
	since time.Time
	stop  context.CancelCauseFunc // of a step that can be stopped alone; nil in another
}

// take takes a step. Collecting and describing share a limit in time and can be stopped
// alone.
func (d *doing) take(ctx context.Context, st step, run func(context.Context) error) error {
	var stop context.CancelCauseFunc
	if st.name == stepCollect || st.name == stepDescribe {
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		late := time.AfterFunc(d.left, func() { stop(d.stopped(fmt.Errorf("collecting the changes took longer than %s", d.limit))) })
		defer func(began time.Time) { late.Stop(); d.left -= time.Since(began) }(time.Now())
	}
	d.mu.Lock()
	d.what, d.since, d.stop = st.what, time.Now(), stop
	d.mu.Unlock()
	return run(ctx)
}

// stopped is the error of collecting that was stopped.
func (d *doing) stopped(why error) error {
	return superqode.WithHint(why, "%s", d.again)
}

// attend answers the signals that come while the session ends; see EndOptions.
func (e *ending) attend(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	e.doing.what, e.doing.since = "ending the session", time.Now()
	kept := e.Rec.Defaults.CollectTimeout
	if e.Rec.State == superqode.StatePreserved {
		kept = 0 // that was for its first end
	}
	e.doing.limit = cmp.Or(e.opt.CollectTimeout, kept, DefaultCollectTimeout)
	e.doing.left = e.doing.limit
	e.doing.again = fmt.Sprintf("superqode workspace end --session %s --collect-timeout 1h", e.Rec.ID)
	done := make(chan struct{})
	go func() {
		for told := false; ; {
			select {
			case sig := <-e.opt.Signals:
				if team.Ends(sig) {
					e.hurry(sig.(syscall.Signal), told, end)
					told = true
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { close(done); end(nil) }
}

// hurry answers one signal.
func (e *ending) hurry(sig syscall.Signal, told bool, end context.CancelCauseFunc) {
	d := &e.doing
	d.mu.Lock()
	defer d.mu.Unlock()
	why := &program.InterruptError{Signal: sig}
	switch {
	case !told && d.stop != nil:
		e.Tell(fmt.Sprintf("%s, for %s so far; once more stops it", d.what, text.Took(time.Since(d.since).Seconds())))
	case !told:
		e.Tell(fmt.Sprintf("%s, for %s so far; once more leaves the rest to: superqode workspace recover", d.what, text.Took(time.Since(d.since).Seconds())))
	case d.stop != nil:
		d.stop(d.stopped(why))
	default:
		end(superqode.WithHint(why, "superqode workspace recover"))
	}
}
