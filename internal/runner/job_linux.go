package runner

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leavesCtrlZ reports whether Ctrl-Z at the terminal of program pid would stop it if a
// shell had started it: the terminal makes a signal of it, for the program's own group,
// and the program neither handles nor ignores that.
func leavesCtrlZ(master *os.File, pid int) bool {
	leaves := false
	_ = control(master, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		leaves = err == nil && group == pid && modes.Lflag&unix.ISIG != 0 && modes.Cc[unix.VSUSP] == ctrlZ
		return err
	})
	if !leaves {
		return false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		name, mask, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if set, _ := strconv.ParseUint(mask, 16, 64); (name == "SigIgn" || name == "SigCgt") && set>>(unix.SIGTSTP-1)&1 != 0 {
			return false
		}
	}
	return true
}
