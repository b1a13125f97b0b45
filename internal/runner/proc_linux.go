package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// proc is one process as /proc/<pid>/stat shows it. A pid alone does not
// identify a process; pid and start time together do.
type proc struct {
	pid, ppid, sid int
	start          uint64 // clock ticks since boot
	dead           bool   // a zombie: nothing of it runs
	threads        int
	resident       int64         // bytes
	cpu            time.Duration // its own, and that of the children it waited for
}

// clockTick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every
// architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// readProc reads one process; ok is false if there is none. buf is scratch.
func readProc(pid int, buf []byte) (p proc, ok bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return proc{}, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, buf[:n])
}

func parseStat(pid int, raw []byte) (p proc, ok bool) {
	stat, ok := proctable.ParseStat(raw)
	if !ok {
		return proc{}, false
	}
	ticks := stat.Int(14) + stat.Int(15) + stat.Int(16) + stat.Int(17) // user and system time, and the same of children
	return proc{
		pid: pid, ppid: stat.Parent(), sid: int(stat.Int(6)), start: stat.Start(), dead: stat.Dead(),
		threads: stat.Threads(), resident: stat.Resident() * int64(os.Getpagesize()),
		cpu: time.Duration(ticks) * clockTick,
	}, true
}

// allProcs reads the whole process table. It is not a consistent picture: it
// may miss a process that is forked meanwhile, so a caller that needs certainty
// reads it again.
func allProcs() map[int]proc {
	procs := make(map[int]proc, 256)
	d, err := os.Open("/proc")
	if err != nil {
		return procs
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	buf := make([]byte, 1024)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProc(pid, buf); ok {
				procs[pid] = p
			}
		}
	}
	return procs
}

// commandLine returns a process's arguments, or its name in brackets.
func commandLine(pid int) []string {
	dir := "/proc/" + strconv.Itoa(pid)
	if b, err := os.ReadFile(dir + "/cmdline"); err == nil && len(b) > 0 {
		return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	}
	b, _ := os.ReadFile(dir + "/comm")
	return []string{"[" + strings.TrimSuffix(string(b), "\n") + "]"}
}

// hasEnv reports whether a process was started with the environment entry kv.
// none means that it has no environment at all: it was started without one, or
// execve is just replacing it.
func hasEnv(pid int, kv string) (has, none bool) {
	if kv == "" {
		return false, false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false, false
	}
	for e := range bytes.SplitSeq(b, []byte{0}) {
		if string(e) == kv {
			return true, false
		}
	}
	return false, len(b) == 0
}

// send signals exactly the process p: it opens a pidfd, then compares the start
// time, so it never hits a process that got the same pid meanwhile. A process
// that has ended is not an error.
func send(p proc, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err == nil {
		defer unix.Close(fd)
	}
	now, ok := readProc(p.pid, make([]byte, 1024))
	if !ok || now.start != p.start {
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else { // before Linux 5.3, or a seccomp filter
		err = unix.Kill(p.pid, sig)
	}
	if err == unix.ESRCH {
		return nil
	}
	return err
}

// waitInfo is the head of siginfo_t as waitid fills it.
type waitInfo struct {
	signo, errno, code int32
	_                  [unsafe.Sizeof(uintptr(0))/4 - 1]int32
	pid                int32
	_                  [128]byte
}

// waitid waits without reaping (WNOWAIT). pid is 0 if nothing has ended and
// options hold WNOHANG.
func waitid(idType, id, options int) (pid int, err error) {
	info, err := waitInfoOf(idType, id, options|unix.WEXITED|unix.WNOWAIT)
	return int(info.pid), err
}

func waitInfoOf(idType, id, options int) (info waitInfo, err error) {
	for {
		_, _, e := unix.Syscall6(unix.SYS_WAITID, uintptr(idType), uintptr(id), uintptr(unsafe.Pointer(&info)),
			uintptr(options), 0, 0)
		switch e {
		case 0:
			return info, nil
		case unix.EINTR:
		default:
			return info, e
		}
	}
}

// stopped is what waitid says of a child that a signal has stopped (CLD_STOPPED).
const stopped = 5

// waitStopped waits until the child pid has stopped, and says so, or has ended.
func waitStopped(pid int) bool {
	info, err := waitInfoOf(unix.P_PID, pid, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT)
	if err != nil || info.code != stopped {
		return false
	}
	_, _ = waitInfoOf(unix.P_PID, pid, unix.WSTOPPED|unix.WNOHANG)
	return true
}

// EndMarked ends every process that was started with the environment entry
// marker (Spec.Marker), and its descendants: TERM, and KILL a second later. It
// is for the programs of a superqode that was killed. It spares this process
// and its ancestors, since the caller may be one of those programs. The result
// names every process that it found; the error wraps ErrLeftOver if some could
// not be ended (Alive).
func EndMarked(marker string) ([]Process, error) {
	var found []Process
	told := map[int]uint64{}
	begin := time.Now()
	left := marked(marker)
	pause := time.Millisecond
	for len(left) > 0 && time.Since(begin) < leftGrace+giveUp {
		for _, p := range left { // before any is ended, which ends others
			if told[p.pid] != p.start {
				found = append(found, Process{PID: p.pid, Args: commandLine(p.pid)})
			}
		}
		for _, p := range left {
			if told[p.pid] != p.start {
				told[p.pid] = p.start
				_ = send(p, unix.SIGTERM)
				_ = send(p, unix.SIGCONT)
			}
			if time.Since(begin) >= leftGrace {
				_ = send(p, unix.SIGKILL)
			}
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
		left = marked(marker)
	}
	var err error
	for _, p := range left {
		for i := range found {
			found[i].Alive = found[i].Alive || found[i].PID == p.pid
		}
		err = fmt.Errorf("process %d: %w", p.pid, ErrLeftOver)
	}
	return found, err
}

// marked returns the living processes with the marker and their descendants.
func marked(marker string) []proc {
	procs := allProcs()
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = procs[pid].ppid {
		spared[pid] = true
	}
	kids := map[int][]int{}
	var order []int
	for pid, p := range procs {
		kids[p.ppid] = append(kids[p.ppid], pid)
		if has, _ := hasEnv(pid, marker); has && !spared[pid] && !p.dead {
			order = append(order, pid)
		}
	}
	seen := map[int]bool{}
	var list []proc
	for i := 0; i < len(order); i++ {
		pid := order[i]
		if seen[pid] || spared[pid] {
			continue
		}
		seen[pid] = true
		if p := procs[pid]; !p.dead {
			list = append(list, p)
		}
		order = append(order, kids[pid]...)
	}
	return list
}
