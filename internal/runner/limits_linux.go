package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The first of these that is available enforces a limit: a cgroup of version 2,
// one of version 1, or a resource limit of each process together with a look at
// the whole tree several times a second. The groups are exact; they count what
// has ended and what is being forked. docs/exec.md says what the others miss.
const (
	byCgroup2  = "cgroup2"
	byCgroup1  = "cgroup1"
	byRlimit   = "rlimit"
	bySampling = "sampling"
)

// hold enforces the limits of one run.
type hold struct {
	Limits
	noCgroup bool
	group    *cgroup            // version 2, with limits in it
	old      map[string]*cgroup // controller → its group of version 1
	rlimits  map[int]uint64
	holdings []Holding
	by       map[string]string
	sampler  sampler
}

// newHold prepares everything that is possible before the program starts;
// release it. noCgroup is for tests.
func newHold(l Limits, noCgroup bool) (*hold, error) {
	h := &hold{Limits: l, noCgroup: noCgroup, old: map[string]*cgroup{}, rlimits: map[int]uint64{},
		by: map[string]string{}}
	if !noCgroup {
		h.group = limitedCgroup(l)
	}
	for _, one := range []struct {
		limit string
		value int64
		find  func() error
	}{
		{LimitMemory, l.Memory, h.findMemory}, {LimitPids, int64(l.Pids), h.findPids},
		{LimitCPU, int64(l.CPUTime), h.findCPU}, {LimitDisk, l.Disk, h.findDisk},
	} {
		if one.value <= 0 {
			continue
		}
		if err := one.find(); err != nil {
			h.release()
			return nil, err
		}
		h.holdings = append(h.holdings, Holding{one.limit, one.value, h.by[one.limit]})
	}
	return h, nil
}

// inGroup reports whether a group of either version enforces a limit. settings are
// those of version 1; see cgroup.set.
func (h *hold) inGroup(limit, controller string, settings ...[2]string) bool {
	if h.group != nil && (limit != LimitCPU || h.group.has("cpu.stat")) {
		h.by[limit] = byCgroup2
		return true
	}
	if h.noCgroup {
		return false
	}
	group := makeCgroup(ownGroup(controller))
	if group == nil {
		return false
	}
	if !group.set(settings) {
		group.remove()
		return false
	}
	h.old[controller], h.by[limit] = group, byCgroup1
	return true
}

func (h *hold) findMemory() error {
	value := strconv.FormatInt(h.Memory, 10)
	// memsw is memory and swap; the file is missing if the kernel does not
	// account for swap.
	settings := [][2]string{{"memory.limit_in_bytes", value}, {"?memory.memsw.limit_in_bytes", value}}
	if h.inGroup(LimitMemory, "memory", settings...) {
		return nil
	}
	// RLIMIT_AS would count what a runtime only reserves: node does not start
	// under any sensible value. RLIMIT_DATA counts what is private and
	// writable.
	h.by[LimitMemory] = byRlimit
	h.rlimits[unix.RLIMIT_DATA] = uint64(max(h.Memory, leastData))
	return nil
}

// leastData is what superqode's helper, which may stand in front of the program or of
// its git, needs of RLIMIT_DATA: Go reserves much. A smaller limit is held by sampling.
const leastData = 96 << 20

func (h *hold) findPids() error {
	if h.inGroup(LimitPids, "pids", [2]string{"pids.max", strconv.Itoa(h.Pids)}) {
		return nil
	}
	if unboundByNproc() {
		return h.refuse(LimitPids,
			"no cgroup with the pids controller is writable, and RLIMIT_NPROC does not bind root")
	}
	h.by[LimitPids] = byRlimit
	h.rlimits[unix.RLIMIT_NPROC] = 0 // set when the program starts: it counts all of the user's
	return nil
}

func (h *hold) findCPU() error {
	if !h.inGroup(LimitCPU, "cpuacct") {
		h.by[LimitCPU] = bySampling
		// of one process, in case sampling comes too late
		h.rlimits[unix.RLIMIT_CPU] = uint64(h.CPUTime/time.Second) + 2
	}
	return nil
}

// fileSlack lets a single file grow a little beyond the disk limit, so that the
// next measurement of the folders sees it.
const fileSlack = 1 << 20

func (h *hold) findDisk() error {
	if len(h.DiskFolders) == 0 {
		return h.refuse(LimitDisk, "there are no folders to measure")
	}
	h.by[LimitDisk] = bySampling
	h.rlimits[unix.RLIMIT_FSIZE] = uint64(h.Disk) + fileSlack
	return nil
}

// stops reports whether the program must stop at its first instruction to get
// its limits.
func (h *hold) stops() bool { return h != nil && (len(h.old) > 0 || len(h.rlimits) > 0) }

// bind sets the limits that a process does not inherit. The process must not
// run yet.
func (h *hold) bind(pid int) error {
	for _, group := range h.old {
		if err := group.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("put the program into its group: %w", err)
		}
	}
	for which, value := range h.rlimits {
		if which == unix.RLIMIT_NPROC {
			value = uint64(tasksOf(os.Getuid()) + h.Pids)
		}
		if err := lower(pid, which, value); err != nil {
			return err
		}
	}
	return nil
}

// lower sets a resource limit, soft and hard, and never above what it is.
func lower(pid, which int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, which, nil, &old); err != nil {
		return fmt.Errorf("read the program's resource limits: %w", err)
	}
	value = min(value, old.Max, math.MaxInt64)
	if err := unix.Prlimit(pid, which, &unix.Rlimit{Cur: min(value, old.Cur), Max: value}, nil); err != nil {
		return fmt.Errorf("set the program's resource limits: %w", err)
	}
	return nil
}

// failed makes the error for a limit that seemed possible and then failed.
func (h *hold) failed(err error) error {
	for _, one := range h.holdings {
		if one.By == byCgroup1 || one.By == byRlimit || one.Limit == LimitDisk || one.Limit == LimitCPU {
			return h.refuse(one.Limit, err.Error())
		}
	}
	return err
}

// bindStopped waits until a traced program stops at its first instruction, sets
// its limits and lets it go. It must run on the thread that started the
// program.
func (h *hold) bindStopped(pid int) error {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for the program's first stop: %w", err)
		}
		break
	}
	if !ws.Stopped() {
		return errors.New("the program ended before its limits could be set")
	}
	// On another thread: this one may be confined by now, and cannot write to
	// the groups.
	bound := make(chan error)
	go func() { bound <- h.bind(pid) }()
	if err := <-bound; err != nil {
		return h.failed(err)
	}
	if err := syscall.PtraceDetach(pid); err != nil {
		return fmt.Errorf("let the program go: %w", err)
	}
	return nil
}

// release removes the groups that still exist.
func (h *hold) release() {
	if h == nil {
		return
	}
	h.group.remove()
	for _, group := range h.old {
		group.remove()
	}
}

// exceeded returns the limit that the tree has exceeded, or "".
func (h *hold) exceeded(t *tree) string {
	var tree sample
	if h.samples() {
		tree = h.sampler.take(t)
	}
	switch {
	case h.Memory > 0 && h.overMemory(tree):
		return LimitMemory
	case h.CPUTime > 0 && h.cpu(tree) > h.CPUTime:
		return LimitCPU
	case h.by[LimitPids] == byRlimit && tree.tasks > h.Pids:
		return LimitPids
	}
	return ""
}

// samples reports whether a limit needs looks at the process table.
func (h *hold) samples() bool {
	return h.by[LimitMemory] == byRlimit || h.by[LimitPids] == byRlimit || h.by[LimitCPU] == bySampling
}

func (h *hold) overMemory(tree sample) bool {
	switch h.by[LimitMemory] {
	case byCgroup2:
		return h.group.number("memory.events", "oom_kill") > 0
	case byCgroup1:
		return h.old["memory"].number("memory.oom_control", "oom_kill") > 0
	}
	// Resident pages that processes share count once for each of them; only if
	// that is too much the exact count, which is expensive, decides.
	return tree.resident > h.Memory && proportional(tree.procs) > h.Memory
}

func (h *hold) cpu(tree sample) time.Duration {
	switch h.by[LimitCPU] {
	case byCgroup2:
		return time.Duration(h.group.number("cpu.stat", "usage_usec")) * time.Microsecond
	case byCgroup1:
		return time.Duration(h.old["cpuacct"].number("cpuacct.usage", ""))
	}
	return tree.cpu
}

// list returns the holdings.
func (h *hold) list() []Holding {
	if h == nil {
		return nil
	}
	return h.holdings
}

// hits returns the limits that refused something to a program without ending
// it: a fork, for example.
func (h *hold) hits() []string {
	n := int64(0)
	switch h.by[LimitPids] {
	case byCgroup2:
		n = h.group.number("pids.events", "max")
	case byCgroup1:
		n = h.old["pids"].number("pids.events", "max")
	case byRlimit: // the kernel does not say; a full tree was refused
		if h.sampler.tasks >= h.Pids {
			n = 1
		}
	}
	if n > 0 {
		return []string{LimitPids}
	}
	return nil
}
