package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A waiter keeps a FIFO open, claims.d/<ticket>. The process that serves the ticket writes
// one byte into it, so that nobody has to look again and again; and since the
// kernel closes it with its process, a FIFO that nobody reads is a waiter that
// has died. A byte that got lost costs one turn of recheck.

// waitLine is the waiting process's end.
type waitLine struct {
	ticket uint64
	path   string
	fifo   *os.File
}

func (t *Table) waitPath(ticket uint64) string {
	return filepath.Join(t.dir, waitFolder, strconv.FormatUint(ticket, 10))
}

func (t *Table) openLine(ticket uint64) (*waitLine, error) {
	path := t.waitPath(ticket)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(path); err != nil { // from before the claims were begun anew
		return nil, err
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	// Open for both, so that the opening waits for nobody and no end of file comes
	// when the writer ends.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &waitLine{ticket, path, f}, nil
}

// close gives the line up. A nil one is no line.
func (w *waitLine) close() error {
	if w == nil {
		return nil
	}
	err := w.fifo.Close()
	if rerr := os.Remove(w.path); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// pause returns when the ticket may have been served, when the context ends, and
// after d at the latest.
func (w *waitLine) pause(ctx context.Context, d time.Duration) {
	var b [64]byte
	if err := w.fifo.SetReadDeadline(time.Now().Add(d)); err != nil { // Go does not poll FIFOs on this system
		select {
		case <-ctx.Done():
		case <-time.After(d / 10):
		}
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = w.fifo.SetReadDeadline(time.Now()) })
	defer stop()
	_, _ = w.fifo.Read(b[:]) // a byte, the deadline, or an error: each is a reason to look
}

// wake notifies a waiter that it was served.
func (t *Table) wake(ticket uint64) {
	fd, err := unix.Open(t.waitPath(ticket), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // it has died, and the next process that looks will see that
	}
	_, _ = unix.Write(fd, []byte{1})
	_ = unix.Close(fd)
}

// waits reports whether the process of a ticket still waits.
func (t *Table) waits(ticket uint64) bool {
	fd, err := unix.Open(t.waitPath(ticket), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR)
	}
	_ = unix.Close(fd)
	return true
}
