package runner

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Abilities reports what the runner can do here, found by trying it. On Linux
// it ends a program's whole tree; a cgroup makes that exact even against a
// program that forks as fast as it is killed, and separates several runs of one
// process. On darwin it ends only the program's process group.
func Abilities() []Ability {
	list := []Ability{
		{"reaper", Subreaper() == nil, "detached processes stay below superqode and end with their program"},
		{"process table", false, "/proc is readable: superqode finds a program's descendants"},
		{"pidfd", false, "a signal never reaches a process with a recycled number"},
		{"cgroup", false, "no writable cgroup (version 2): superqode may fail to end a program that forks faster than it can read the process table"},
		{"terminal", false, "no pseudo-terminal is available: programs get pipes"},
	}
	_, list[1].Have = readProc(os.Getpid(), make([]byte, 1024))
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		list[2].Have = true
		_ = unix.Close(fd)
	}
	if cg := newCgroup(); cg != nil {
		_, err := os.Stat(filepath.Join(cg.path, "cgroup.kill"))
		list[3].Have, list[3].Detail = true, "a program's processes are one group, which superqode kills at once"
		if err != nil {
			list[3].Detail = "a program's processes are one group (without cgroup.kill: Linux before 5.14)"
		}
		cg.remove()
	}
	if p, err := openPTY(nil); err == nil {
		list[4].Have, list[4].Detail = true, "a terminal stays a terminal"
		_, _ = p.master.Close(), p.slave.Close()
	}
	return list
}
