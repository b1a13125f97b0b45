package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Feed is a stdin that is written to while the program runs. It is given to Run as
// Spec.Stdin, of one run only, and closed when that has returned. Its methods may be
// called at any time.
type Feed struct {
	r, w *os.File
	turn chan struct{} // held by who writes
}

// NewFeed makes the pipe.
func NewFeed() (*Feed, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make stdin: %w", err)
	}
	return &Feed{r, w, make(chan struct{}, 1)}, nil
}

// Read is for a program that has a terminal, to which what it returns is copied.
func (f *Feed) Read(p []byte) (int, error) { return f.r.Read(p) }

// Write writes all of p, or what the program makes room for until ctx ends: n says how
// much that is. Writers wait for one another. The error wraps os.ErrClosed where nobody
// will read any more.
func (f *Feed) Write(ctx context.Context, p []byte) (n int, err error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-f.turn }()
	_ = f.w.SetWriteDeadline(time.Time{}) // fails only where the write fails, too
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = f.w.SetWriteDeadline(time.Now())
		close(late)
	})
	n, err = f.w.Write(p)
	if !stop() {
		<-late // or it would end the next one's write
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = context.Cause(ctx)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed):
		err = fmt.Errorf("the program's stdin is closed: %w", os.ErrClosed)
	}
	return n, err
}

// End is the end of the program's stdin. It may be called again.
func (f *Feed) End() { _ = f.w.Close() }

// Close is End, and nobody waits for the program any more.
func (f *Feed) Close() { f.End(); _ = f.r.Close() }
