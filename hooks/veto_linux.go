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

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// errFirst means that a process is the first one of its PID namespace: the kernel
// delivers it no signal from inside that would end it.
var errFirst = errors.New("it is the first process of its PID namespace")

// endProcess ends git: with SIGTERM, on which it takes its lock files away, or,
// where that is ignored, with SIGKILL, and then the lock files are removed here.
func endProcess(p proctable.Process, _ string) error {
	if ended(p) {
		return nil
	}
	pid := ownNumber(p.PID)
	if pid == 1 {
		return errFirst
	}
	locks := locksOf(p.PID)
	if !ignoresTerm(p.PID) {
		if err := unix.Kill(pid, unix.SIGTERM); errors.Is(err, unix.ESRCH) || err == nil && gone(p, termWait) {
			return nil
		}
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	if !gone(p, killWait) {
		return fmt.Errorf("process %d does not end", pid)
	}
	for _, l := range locks {
		if err := l.remove(); err != nil {
			return fmt.Errorf("remove the lock file of process %d: %w", pid, err)
		}
	}
	return nil
}

// gone waits until a process has ended.
func gone(p proctable.Process, limit time.Duration) bool {
	for until := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if ended(p) {
			return true
		}
		if time.Now().After(until) {
			return false
		}
	}
}

// ended reports whether a process is no more; one that only waits for its parent
// to take note is not. Its number may belong to another one by now.
func ended(p proctable.Process) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	f := bytes.Fields(after)
	if len(f) < 20 {
		return true
	}
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	return f[0][0] == 'Z' || f[0][0] == 'X' || err == nil && start != p.Start
}

// parentPID is this process's parent by the number that /proc knows it by, which is
// another one than Getppid reports where /proc belongs to another PID namespace.
func parentPID() int {
	if self, err := os.Readlink("/proc/self"); err == nil {
		if pid, err := strconv.Atoi(self); err == nil {
			if p, ok := proctable.Read(pid); ok {
				return p.Parent
			}
		}
	}
	return os.Getppid()
}

// ownNumber is the number of a process in its own PID namespace, the last of
// NSpid in proc_pid_status(5). Git and its hooks live in the same one.
func ownNumber(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return pid
	}
	for line := range bytes.Lines(data) {
		if list, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			f := bytes.Fields(list)
			if n, err := strconv.Atoi(string(f[len(f)-1])); err == nil {
				return n
			}
		}
	}
	return pid
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
