package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/guard"
)

// endProcess ends git: with SIGTERM, on which it takes its lock files away, or,
// where that is ignored, with SIGKILL, and then the lock files are removed here.
func endProcess(p guard.Process, _ string) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case err != nil:
		fd = -1 // before Linux 5.3, or not permitted in a container
	default:
		defer unix.Close(fd)
	}
	if now, ok := guard.ReadProcess(p.PID); !ok || now.Start != p.Start {
		return nil // it has ended, and another process may have its number already
	}
	locks := locksOf(p.PID)
	if !ignoresTerm(p.PID) {
		if err := unix.Kill(p.PID, unix.SIGTERM); errors.Is(err, unix.ESRCH) || err == nil && gone(p.PID, fd, termWait) {
			return nil
		}
	}
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	if !gone(p.PID, fd, killWait) {
		return fmt.Errorf("process %d does not end", p.PID)
	}
	for _, l := range locks {
		if err := l.remove(); err != nil {
			return fmt.Errorf("remove the lock file of process %d: %w", p.PID, err)
		}
	}
	return nil
}

// gone waits until a process has ended; a zombie has.
func gone(pid, fd int, limit time.Duration) bool {
	for until := time.Now().Add(limit); ; {
		if fd >= 0 {
			left := max(int(time.Until(until).Milliseconds()), 0)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, left)
			if n > 0 && err == nil {
				return true
			}
		} else if ended(pid) {
			return true
		} else {
			time.Sleep(time.Millisecond)
		}
		if time.Now().After(until) {
			return false
		}
	}
}

func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(stat, ')')
	return i > 0 && i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// ignoresTerm reads the signal masks of a process. Git's own handler removes the
// lock files and raises the signal again; where it was ignored before git started
// git would go on without its locks.
func ignoresTerm(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		for _, key := range []string{"SigIgn:", "SigBlk:"} {
			if v, ok := bytes.CutPrefix(line, []byte(key)); ok {
				mask, err := strconv.ParseUint(string(bytes.TrimSpace(v)), 16, 64)
				if err == nil && mask&(1<<(unix.SIGTERM-1)) != 0 {
					return true
				}
			}
		}
	}
	return false
}

// heldLock is a lock file that a process has open.
type heldLock struct {
	path string
	info os.FileInfo
}

// locksOf lists the lock files that a process holds open.
func locksOf(pid int) []heldLock {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []heldLock
	for _, f := range fds {
		path, err := os.Readlink(filepath.Join(dir, f.Name()))
		if err != nil || !strings.HasSuffix(path, ".lock") {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			list = append(list, heldLock{path, info})
		}
	}
	return list
}

// remove takes the lock file away, if it is still the same one.
func (l heldLock) remove() error {
	now, err := os.Lstat(l.path)
	if err != nil || !os.SameFile(now, l.info) {
		return nil // gone, or somebody else's by now
	}
	if err := os.Remove(l.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// workingDir returns the working directory of a process.
func workingDir(pid int) (string, bool) {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return dir, err == nil && filepath.IsAbs(dir)
}
