package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// sample is one look at a tree through the process table.
type sample struct {
	pids     []int
	tasks    int   // processes and threads
	resident int64 // bytes
	cpu      time.Duration
}

// sampler adds up processor time over several looks: the time of a process that
// ended is lost if nobody in the tree waited for it.
type sampler struct {
	last map[int]proctime // what was seen at the last look
	lost time.Duration    // of orphans that are gone
	most time.Duration

	tasks int // the most seen at one time
}

type proctime struct {
	start uint64
	total time.Duration // its own, and that of the children it waited for
	ours  bool          // its parent was this process, which is not part of the tree
}

// clockTick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every
// architecture that Go runs on.
const clockTick = 10 * time.Millisecond

func (s *sampler) take(t *tree) sample {
	var out sample
	now, self := map[int]proctime{}, os.Getpid()
	var sum time.Duration
	for _, p := range t.members() {
		st, ok := readUsage(p.pid)
		if !ok || st.start != p.start {
			continue
		}
		out.pids = append(out.pids, p.pid)
		out.tasks += st.threads
		out.resident += st.resident
		now[p.pid] = proctime{p.start, st.cpu, p.ppid == self && p.pid != t.pid}
		sum += st.cpu
	}
	for pid, was := range s.last {
		if is, there := now[pid]; was.ours && (!there || is.start != was.start) {
			s.lost += was.total
		}
	}
	s.last = now
	s.most = max(s.most, sum+s.lost)
	s.tasks = max(s.tasks, out.tasks)
	out.cpu = s.most
	return out
}

// procUsage is what one process uses.
type procUsage struct {
	start    uint64
	threads  int
	resident int64
	cpu      time.Duration
}

func readUsage(pid int) (u procUsage, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return u, false
	}
	stat, ok := proctable.ParseStat(raw)
	if !ok {
		return u, false
	}
	ticks := stat.Int(14) + stat.Int(15) + stat.Int(16) + stat.Int(17) // user and system time, and the same of children
	return procUsage{
		start: stat.Start(), threads: stat.Threads(), resident: stat.Resident() * int64(os.Getpagesize()),
		cpu: time.Duration(ticks) * clockTick,
	}, true
}

// proportional returns the memory of the processes, counting what they share
// once. For a process that we may not inspect its resident pages count.
func proportional(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err != nil {
			if u, ok := readUsage(pid); ok {
				sum += u.resident
			}
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line) // "Pss:  123 kB"
			if len(f) == 3 && (f[0] == "Pss:" || f[0] == "SwapPss:") {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}

// tasksOf counts the processes and threads of a user, as RLIMIT_NPROC does.
func tasksOf(uid int) int {
	d, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	n := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name, &st) != nil || int(st.Uid) != uid {
			continue
		}
		if u, ok := readUsage(pid); ok {
			n += u.threads
		}
	}
	return n
}

// unboundByNproc reports whether RLIMIT_NPROC has no effect on this process:
// fork(2) exempts root and two capabilities.
func unboundByNproc() bool {
	if os.Getuid() == 0 {
		return true
	}
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, _ := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return caps&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_SYS_RESOURCE) != 0
		}
	}
	return false
}
