package runner

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func fcntlGetfl(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) }

// openFiles counts this process's descriptors.
func openFiles() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(d)
}

func goroutines() int { return runtime.NumGoroutine() }
