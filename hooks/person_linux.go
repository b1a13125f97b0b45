package hooks

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// atTerminal asks /proc, since a hook's own input is never git's.
func atTerminal(pid int) (yes bool, why string) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false, "the process that asks cannot be seen"
	}
	// proc_pid_stat(5): state ppid pgrp session tty_nr tpgid, after the name.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 6 {
		return false, "the process that asks cannot be seen"
	}
	tty, _ := strconv.Atoi(string(f[4]))
	switch {
	case tty == 0:
		return false, "it has no terminal"
	case string(f[2]) != string(f[5]):
		return false, "it runs in the background of its terminal"
	}
	for _, fd := range []string{"0", "2"} {
		st, err := os.Stat(filepath.Join(dir, "fd", fd))
		if err != nil || st.Mode()&os.ModeCharDevice == 0 {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && sameTerminal(tty, uint64(sys.Rdev)) {
			return true, ""
		}
	}
	return false, "neither its input nor its messages are the terminal"
}

// sameTerminal compares a terminal's number in /proc (minor bits 31-20 and 7-0,
// major bits 15-8) with a device number.
func sameTerminal(tty int, rdev uint64) bool {
	major, minor := uint64(tty>>8)&0xff, uint64(tty)&0xff|uint64(tty>>12)&0xfff00
	dmajor := rdev>>8&0xfff | rdev>>32&0xfffff000
	dminor := rdev&0xff | rdev>>12&0xffffff00
	return major == dmajor && minor == dminor || dmajor == 5 && dminor == 0 // /dev/tty is whichever it has
}
