package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sample is one look at a tree through the process table.
type sample struct {
	procs    []proc
	tasks    int   // processes and threads
	resident int64 // bytes
	cpu      time.Duration
}

// sampler adds up processor time over several looks: the time of a process that
// ended is lost if nobody in the tree waited for it.
type sampler struct {
	last []proc        // what was seen at the last look
	lost time.Duration // of orphans that are gone
	most time.Duration

	tasks int // the most seen at one time
}

func (s *sampler) take(t *tree) sample {
	out := sample{procs: t.members()}
	start := map[int]uint64{}
	var sum time.Duration
	for _, p := range out.procs {
		out.tasks += p.threads
		out.resident += p.resident
		sum += p.cpu
		start[p.pid] = p.start
	}
	for _, was := range s.last {
		// Its parent was this process, which is not part of the tree.
		if was.ppid == os.Getpid() && was.pid != t.pid && start[was.pid] != was.start {
			s.lost += was.cpu
		}
	}
	s.last = out.procs
	s.most = max(s.most, sum+s.lost)
	s.tasks = max(s.tasks, out.tasks)
	out.cpu = s.most
	return out
}

// proportional returns the memory of the processes, counting what they share
// once. For a process that we may not inspect its resident pages count.
func proportional(procs []proc) int64 {
	var sum int64
	for _, p := range procs {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/smaps_rollup")
		if err != nil {
			sum += p.resident
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
	n := 0
	for pid, p := range allProcs() {
		var st unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == uid {
			n += p.threads
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
