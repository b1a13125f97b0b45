//go:build !linux

package hooks

import (
	"os"

	"golang.org/x/sys/unix"
)

// atTerminal asks the terminal itself: a hook has git's standard error, and
// terminal.
func atTerminal(pid int) (yes bool, why string) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return false, "it has no terminal"
	}
	defer tty.Close()
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return false, "it has no terminal"
	}
	group, err := unix.Getpgid(pid)
	if err != nil || group != front {
		return false, "it runs in the background of its terminal"
	}
	for _, fd := range []int{0, 2} {
		if _, err := unix.IoctlGetTermios(fd, unix.TIOCGETA); err == nil {
			return true, ""
		}
	}
	return false, "neither its input nor its messages are the terminal"
}
