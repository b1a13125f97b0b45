package runner

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// widen makes a pipe larger, so that a fast program and we switch less often.
// The per-user budget of pipe pages may refuse it; that is not an error.
func widen(p *os.File) {
	_ = control(p, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 256<<10)
		return err
	})
}

// waitReadable waits until in can be read without blocking, or the other end of
// wake is closed. in may be nil, wait negative for no limit.
func waitReadable(in, wake *os.File, wait time.Duration) (woken, ready bool) {
	fds := []unix.PollFd{{Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	for i, f := range []*os.File{wake, in} {
		if f != nil {
			if control(f, func(fd int) error { fds[i].Fd = int32(fd); return nil }) != nil {
				return true, false
			}
		}
	}
	ms := -1
	if wait >= 0 {
		ms = int(wait.Milliseconds())
	}
	for {
		if _, err := unix.Poll(fds, ms); err == nil || err != unix.EINTR {
			return fds[0].Revents != 0, fds[1].Revents != 0
		}
	}
}
