//go:build !linux

package runner

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// widen does nothing: this system has no way to set a pipe's size.
func widen(*os.File) {}

// waitReadable waits until in can be read without blocking, or the other end of
// wake is closed. in may be nil, wait negative for no limit. It uses select
// because poll does not know terminals on darwin.
func waitReadable(in, wake *os.File, wait time.Duration) (woken, ready bool) {
	fds := [2]int{-1, -1}
	for i, f := range []*os.File{wake, in} {
		if f != nil {
			if control(f, func(fd int) error { fds[i] = fd; return nil }) != nil || fds[i] >= unix.FD_SETSIZE {
				return true, false
			}
		}
	}
	for {
		var set unix.FdSet
		for _, fd := range fds {
			if fd >= 0 {
				set.Set(fd)
			}
		}
		var tv *unix.Timeval
		if wait >= 0 {
			v := unix.NsecToTimeval(wait.Nanoseconds())
			tv = &v
		}
		_, err := unix.Select(max(fds[0], fds[1])+1, &set, nil, nil, tv)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return true, false
		}
		return fds[0] >= 0 && set.IsSet(fds[0]), fds[1] >= 0 && set.IsSet(fds[1])
	}
}
