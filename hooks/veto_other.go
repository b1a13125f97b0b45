//go:build !linux

package hooks

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// endProcess ends git: with SIGTERM, on which it takes its lock files away, or,
// where that does not help, with SIGKILL, and then the index's lock is removed
// here if it was there before: a denied command is one that holds it.
func endProcess(p proctable.Process, lock string) error {
	before, lerr := os.Lstat(lock)
	if err := syscall.Kill(p.PID, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) || err == nil && gone(p, termWait) {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	if !gone(p, killWait) {
		return fmt.Errorf("process %d does not end", p.PID)
	}
	if now, err := os.Lstat(lock); lerr != nil || err != nil || !os.SameFile(before, now) {
		return nil
	}
	if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the lock file of process %d: %w", p.PID, err)
	}
	return nil
}

// gone waits until a process has ended. Git is this process's parent, so its
// number is not used again before somebody has waited for it.
func gone(p proctable.Process, limit time.Duration) bool {
	parent := os.Getppid()
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if err := syscall.Kill(p.PID, 0); errors.Is(err, syscall.ESRCH) || parent == p.PID && os.Getppid() != p.PID {
			return true
		}
	}
	return false
}

func parentPID() int { return os.Getppid() }

// workingDir would return the working directory of a process; macOS reports it only
// through libproc.
func workingDir(int) (string, bool) { return "", false }
