package gc

import "golang.org/x/sys/unix"

// yieldCPU lets every other process go first, for the processor and the disk. A
// kernel that refuses only makes the sweep less polite.
func yieldCPU() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	const ioprioWhoProcess, ioprioClassIdle = 1, 3 << 13
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, ioprioClassIdle)
}
