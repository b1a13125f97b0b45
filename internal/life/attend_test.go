package life

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/site"
)

// The first signal shows what an end is doing. The next stops collecting, which the
// other steps do not need, and after that the end.
func TestSignalsWhileEnding(t *testing.T) {
	told := make(chan string, 10)
	signals := make(chan os.Signal)
	s := &Session{Attached: &attach.Attached{Site: &site.Site{Host: &site.Host{Tell: func(line string) { told <- line }}}}}
	e := s.ending(attach.Alone{}, EndOptions{Signals: signals}, "")
	ctx, stop := e.attend(t.Context())
	defer stop()
	send := func(list ...os.Signal) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, sig := range list {
				signals <- sig
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
	}
	err := e.doing.take(ctx, step{name: stepCollect, what: "collecting"}, send(syscall.SIGUSR1, os.Interrupt, syscall.SIGTERM))
	interrupt, ok := errors.AsType[*program.InterruptError](err)
	if line := <-told; !ok || interrupt.Signal != syscall.SIGTERM || !strings.HasPrefix(line, "collecting, for ") || ctx.Err() != nil {
		t.Fatalf("%q, %v, %v", line, err, ctx.Err())
	}
	err = e.doing.take(ctx, step{name: stepReport, what: "reporting"}, send(os.Interrupt))
	if superqode.Hint(err) != "superqode workspace recover" || len(told) > 0 {
		t.Fatal(err)
	}
}

// Collecting ends with its time; nothing else does.
func TestCollectTimeout(t *testing.T) {
	d := doing{limit: time.Nanosecond}
	err := d.take(t.Context(), step{name: stepCollect}, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
	if err == nil || !strings.Contains(err.Error(), "took longer than 1ns") {
		t.Error(err)
	}
	if err := d.take(t.Context(), step{name: stepReport}, func(ctx context.Context) error { return ctx.Err() }); err != nil {
		t.Error(err)
	}
}
