package workspace

import (
	"fmt"
	"os"
	"syscall"
)

// start lets a command begin in an open directory, whatever has taken the place of its
// path, and without a network. Who is not root needs a user namespace to make one.
func start(dir *os.File, net Net) func(string, []string, *os.ProcAttr) (string, []string, error) {
	return func(path string, argv []string, attr *os.ProcAttr) (string, []string, error) {
		attr.Dir = inside(dir)
		if net == NetNone {
			attr.Sys.Cloneflags |= syscall.CLONE_NEWNET
			if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
				attr.Sys.Cloneflags |= syscall.CLONE_NEWUSER
				attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
				attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
			}
		}
		return path, argv, nil
	}
}

// inside is a path to an open directory for a process that this one starts.
func inside(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) }
