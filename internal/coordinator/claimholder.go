package coordinator

import (
	"bytes"
	"os"
	"strconv"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// ProcessHolder makes a running process the holder of claims. A process that is
// not there is an error that wraps superqode.ErrNotFound.
func ProcessHolder(pid int) (Holder, error) {
	p, ok := proctable.Read(pid)
	if !ok {
		return Holder{}, superqode.Errorf(superqode.ErrNotFound, "there is no process %d", pid)
	}
	return Holder{PID: pid, Start: p.Start}, nil
}

// LockHolder makes the keeper of a lock file's flock the holder of claims. The
// lock must be taken already.
func LockHolder(path string) Holder { return Holder{Lock: superqode.HostPath(path)} }

// isAlive asks the kernel. A process number that was given to another process
// since is a dead holder.
func isAlive(h Holder) (bool, error) {
	switch {
	case h.Lock != "":
		held, err := lockfile.IsHeld(string(h.Lock))
		if os.IsPermission(err) {
			return true, err
		}
		return held, err
	case h.PID != 0:
		p, ok := proctable.Read(h.PID)
		return ok && p.Start == h.Start && !isZombie(h.PID), nil
	}
	return true, nil
}

// isZombie reports a process that has died and whose parent has not looked yet
// (proc_pid_stat(5); elsewhere nothing is known).
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(stat, ')')
	return err == nil && i > 0 && len(stat) > i+2 && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}
