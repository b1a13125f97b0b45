package gc

import "golang.org/x/sys/unix"

// yieldCPU lets every other process go first.
func yieldCPU() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20) }
