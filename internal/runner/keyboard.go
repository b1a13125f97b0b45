package runner

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// keyboard copies our stdin to the program's terminal, with ours in raw mode so
// that the program gets every key, Ctrl-C included. While we are a background
// job it leaves our terminal alone and looks again twice a second.
type keyboard struct {
	in     *os.File
	to     *os.File
	wake   *os.File // its write end ends run
	woken  *os.File
	isTerm bool

	mu       sync.Mutex
	attached bool
	stopped  bool
}

const lookAgain = 500 * time.Millisecond

func newKeyboard(in, to *os.File) (*keyboard, error) {
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make stdin: %w", err)
	}
	k := &keyboard{in: in, to: to, wake: wake, woken: woken}
	_, k.isTerm = terminal(in)
	k.attach()
	return k, nil
}

// attach makes the terminal raw if we are in its foreground. Call it again
// after a stop, when the shell may have changed the modes.
func (k *keyboard) attach() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	if !k.isTerm {
		k.attached = true
		return true
	}
	if !foreground(k.in) {
		return k.attached
	}
	_ = makeRaw(k.in) // streams.keep has what it was
	k.attached = true
	return true
}

func (k *keyboard) run() {
	buf, eof := make([]byte, 4096), []byte{4} // VEOF, a terminal's only end of file
	for {
		if !k.attachOnce() {
			if woken, _ := waitReadable(nil, k.woken, lookAgain); woken {
				return
			}
			continue
		}
		woken, ready := waitReadable(k.in, k.woken, -1)
		if woken || !ready {
			return
		}
		n := 0
		err := control(k.in, func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if n <= 0 {
			if !k.isTerm {
				_, _ = k.to.Write(eof)
			}
			return
		}
		if eof = []byte{4}; buf[n-1] != '\n' {
			eof = []byte{4, 4} // the first one only ends the unfinished line
		}
		if _, err := k.to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (k *keyboard) attachOnce() bool {
	k.mu.Lock()
	done := k.attached
	k.mu.Unlock()
	return done || k.attach()
}

// stop ends run; do not attach after it.
func (k *keyboard) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.stopped = true
		_ = k.wake.Close()
		_ = k.to.SetWriteDeadline(time.Now())
	}
}

func (k *keyboard) close() { _ = k.woken.Close() }
