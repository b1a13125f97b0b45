package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a running program with all its descendants. The program stays a
// zombie until finish: its number, which is also the number of its session and
// of its process group, cannot be reused before.
type tree struct {
	pid     int
	exited  chan struct{} // closed when the program has ended
	stopped chan struct{} // the program itself has stopped
	marker  string
	cg      *cgroup // nil: not available
	hold    *hold   // nil: no limits

	process *os.Process
	known   map[int]uint64 // members seen, pid → start time
	sids    map[int]bool   // their sessions
	immune  map[int]uint64 // members that we may not signal
	moved   bool           // the last look at the process table may have missed members
	doubt   bool           // it showed an orphan that may be ours, or another run's
	leaving bool           // it showed the end of the tree: what is left belongs to others
}

// startTree starts the program in a session of its own.
func startTree(path string, spec Spec, files []*os.File, ctty bool) (*tree, error) {
	if err := Subreaper(); err != nil {
		return nil, err
	}
	t := &tree{
		marker: spec.Marker, exited: make(chan struct{}), stopped: make(chan struct{}, 1),
		known: map[int]uint64{}, sids: map[int]bool{}, immune: map[int]uint64{},
	}
	if spec.Limits.any() {
		var err error
		if t.hold, err = newHold(spec.Limits, spec.noCgroup); err != nil {
			return nil, err
		}
		t.cg = t.hold.group
	}
	if !spec.noCgroup && t.cg == nil {
		t.cg = newCgroup()
	}
	attr := &os.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files}
	started := make(chan error)
	go ownThread(spec.Confine != nil, func() {
		err := t.confineAndSpawn(path, spec, attr, ctty)
		started <- err
		if err != nil {
			return
		}
		for waitStopped(t.pid) {
			select {
			case t.stopped <- struct{}{}:
			default:
			}
		}
		close(t.exited)
	})
	if err := <-started; err != nil {
		t.cg.remove()
		t.hold.release()
		return nil, err
	}
	return t, nil
}

// ownThread runs fn on one thread: PDEATHSIG fires when the thread that forked
// ends, not the process. Nothing else uses a spoiled thread afterwards: it ends
// with its goroutine, which does not unlock it. The main thread cannot end, and
// represents the whole process in /proc, so ownThread never uses it.
func ownThread(spoiled bool, fn func()) {
	runtime.LockOSThread()
	if spoiled && unix.Gettid() != unix.Getpid() {
		fn()
		return
	}
	defer runtime.UnlockOSThread()
	if !spoiled {
		fn()
		return
	}
	done := make(chan struct{})
	go func() { // cannot run on the main thread, which is held here
		runtime.LockOSThread()
		fn()
		close(done)
	}()
	<-done
}

func (t *tree) confineAndSpawn(path string, spec Spec, attr *os.ProcAttr, ctty bool) error {
	if spec.Confine != nil {
		if err := spec.Confine(); err != nil {
			return &ConfineError{err}
		}
	}
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: ctty, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	argv := spec.Args
	if spec.Wrap != nil {
		var err error
		if path, argv, err = spec.Wrap(path, argv, attr); err != nil {
			return &ConfineError{err}
		}
	}
	return t.spawn(path, argv, attr)
}

func (t *tree) spawn(path string, argv []string, attr *os.ProcAttr) error {
	if t.cg != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(t.cg.dir.Fd())
	}
	children.mu.Lock()
	defer children.mu.Unlock()
	children.begin()
	attr.Sys.Ptrace = t.hold.stops()
	p, err := startProcess(path, argv, attr)
	if err != nil && t.cg != nil && (t.hold == nil || t.hold.group == nil) {
		// The group may be the reason: it may exist without being writable for
		// us.
		attr.Sys.UseCgroupFD = false
		if p, err = startProcess(path, argv, attr); err == nil {
			t.cg.remove()
			t.cg = nil
		}
	}
	if errors.Is(err, syscall.EPERM) && t.hold.stops() {
		return t.hold.failed(fmt.Errorf("the program cannot be stopped at its start (ptrace): %w", err))
	}
	if err != nil {
		return err
	}
	if t.hold.stops() {
		if err := t.hold.bindStopped(p.Pid); err != nil {
			_ = p.Kill()
			_, _ = p.Wait()
			return err
		}
	}
	t.process, t.pid = p, p.Pid
	t.sids[t.pid] = true
	children.add(t)
	return nil
}

// group signals the program's process group.
func (t *tree) group(sig syscall.Signal) { _ = unix.Kill(-t.pid, sig) }

// signal sends sig to every member, parents first: a shell must get it before
// the command that it waits for ends, or it would start the next one.
func (t *tree) signal(sig syscall.Signal) {
	for _, p := range t.members() {
		t.send(p, sig)
	}
}

func (t *tree) send(p proc, sig syscall.Signal) {
	if send(p, sig) == unix.EPERM {
		t.immune[p.pid] = p.start
	}
}

// kill is one round of killing. It stops the members first, until no new one
// appears, so that a fork bomb stands still; the next round meets whatever
// slipped through.
func (t *tree) kill() {
	t.cg.kill()
	stopped := map[int]uint64{}
	for range 8 {
		fresh := false
		for _, p := range t.members() {
			if stopped[p.pid] != p.start {
				stopped[p.pid], fresh = p.start, true
				t.send(p, unix.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	t.group(unix.SIGKILL)
	t.signal(unix.SIGKILL)
}

// doubtful reports whether the last look left an orphan undecided.
func (t *tree) doubtful() bool { return t.doubt }

// empty reports whether nothing of the tree is alive. One look at the process
// table is enough unless something changed meanwhile. If parents are hidden
// (hidepid) it always seems so, hence the limit.
func (t *tree) empty() bool {
	for range 5 {
		if len(t.members()) > 0 {
			return false
		}
		if !t.moved {
			break
		}
	}
	return true
}

// stuck reports whether everything that is alive is out of our reach.
func (t *tree) stuck() bool {
	left := t.members()
	for _, p := range left {
		if t.immune[p.pid] != p.start {
			return false
		}
	}
	return len(left) > 0
}

// survivors names the members.
func (t *tree) survivors() []Process {
	var list []Process
	for _, p := range t.members() {
		list = append(list, Process{PID: p.pid, Args: commandLine(p.pid)})
	}
	return list
}

// alive reports whether pid is still a member.
func (t *tree) alive(pid int) bool {
	_, ok := t.known[pid]
	return ok
}

// members looks at the process table and returns the living members, the program
// first, parents before children. It reaps orphans on the way.
func (t *tree) members() []proc {
	children.mu.Lock()
	defer children.mu.Unlock()
	procs := allProcs()
	children.reap(procs)
	kids := make(map[int][]int, len(procs))
	var order []int
	t.moved, t.doubt = false, false
	for pid, p := range procs {
		kids[p.ppid] = append(kids[p.ppid], pid)
		// A process whose parent ended while we read the table has no parent in
		// it. A parent that ended a moment before is a zombie of ours, which
		// nobody reaps as long as we hold the lock.
		if _, ok := procs[p.ppid]; !ok && p.ppid != 0 || p.dead && children.orphan(p) {
			t.moved = true
		}
		if t.owns(p) {
			order = append(order, pid)
		}
	}
	order = t.descend(append(order, t.cg.pids()...), kids)
	known := make(map[int]uint64, len(order))
	var list []proc
	for _, pid := range order {
		p, ok := procs[pid]
		if !ok || p.dead || pid == children.self {
			continue
		}
		list = append(list, p)
		known[pid] = p.start
		t.sids[p.sid] = true
	}
	t.known = known
	t.leaving = len(list) == 0 && procs[t.pid].dead
	return list
}

// descend returns roots and all their descendants, breadth first, each once,
// the program first.
func (t *tree) descend(roots []int, kids map[int][]int) []int {
	seen := map[int]bool{}
	var order []int
	add := func(pid int) {
		if !seen[pid] {
			seen[pid] = true
			order = append(order, pid)
		}
	}
	walk := func(from int) {
		for i := from; i < len(order); i++ {
			for _, kid := range kids[order[i]] {
				add(kid)
			}
		}
	}
	add(t.pid)
	walk(0)
	n := len(order)
	for _, pid := range roots {
		add(pid)
	}
	walk(n)
	return order
}

// owns reports whether p belongs to this tree by itself, not by its parent. An
// orphan without any mark belongs to the only run; if several runs are under
// way, and there is no cgroup, the one that ends last takes it.
func (t *tree) owns(p proc) bool {
	if p.pid == t.pid || p.sid == t.pid || t.known[p.pid] == p.start && p.start != 0 {
		return true
	}
	if !children.orphan(p) {
		return false
	}
	if t.sids[p.sid] {
		return true
	}
	has, none := hasEnv(p.pid, t.marker)
	if has || children.alone(t) {
		return true
	}
	t.doubt = t.doubt || none && !p.dead
	return false
}

// finish reaps the program and releases everything; the status is what wait
// reported. Call it once, after exited.
func (t *tree) finish() (syscall.WaitStatus, error) {
	st, err := children.remove(t, t.process.Wait)
	t.cg.remove()
	t.hold.release()
	if err != nil {
		return 0, err
	}
	return st.Sys().(syscall.WaitStatus), nil
}

// abandon is finish for a program that we cannot end.
func (t *tree) abandon() {
	_, _ = children.remove(t, func() (*os.ProcessState, error) { return nil, t.process.Release() })
	t.cg.remove()
	t.hold.release()
}
