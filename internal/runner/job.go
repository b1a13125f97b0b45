package runner

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// For the user's shell this process is one job, with the programs that it runs. Ctrl-Z
// stops both, fg and SIGCONT let both go on. What stops a program comes first (SIGTSTP,
// Ctrl-Z at its terminal, the program itself), this process follows once all its
// programs have stopped, and its SIGCONT is theirs. A program's own process group has
// no parent in its session, so TSTP never stops it: it gets STOP. The program itself gets
// it before its group does: a child that is stopped between vfork and execve, where a shell's
// commands begin, keeps its parent from stopping (vfork(2)), and nobody would hear of it.

// jobSignals are those that a terminal's window and its job control send.
func jobSignals() []os.Signal {
	list := []os.Signal{syscall.SIGWINCH, syscall.SIGCONT}
	if !signal.Ignored(syscall.SIGTSTP) { // by who does not want this job to stop
		list = append(list, syscall.SIGTSTP)
	}
	return list
}

// jobs are the runs that stop together.
var jobs = jobTable{stopped: map[*run]bool{}}

type jobTable struct {
	mu      sync.Mutex
	stopped map[*run]bool
}

func (j *jobTable) enter(r *run) { j.set(func() { j.stopped[r] = false }) }
func (j *jobTable) leave(r *run) { j.set(func() { delete(j.stopped, r) }) }
func (j *jobTable) stop(r *run)  { j.set(func() { j.stopped[r] = true }) }

// set changes the table and, when all have stopped, stops this process with all of its
// group, as the terminal would have.
func (j *jobTable) set(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	if len(j.stopped) == 0 {
		return
	}
	for _, stopped := range j.stopped {
		if !stopped {
			return
		}
	}
	for r := range j.stopped {
		j.stopped[r] = false // SIGCONT comes to all
	}
	_ = unix.Kill(0, unix.SIGSTOP)
}

// stoppable reports whether somebody does job control for this process: it has a
// terminal, and the nearest ancestor outside of its group is in its session. Nobody else
// would let it go on.
func stoppable() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close() // opened for reading only
	sid, _ := unix.Getsid(0)
	group := unix.Getpgrp()
	for pid := os.Getppid(); pid > 1; {
		if its, err := unix.Getsid(pid); err != nil || its != sid {
			return false
		}
		if its, err := unix.Getpgid(pid); err != nil || its != group {
			return err == nil
		}
		p, ok := proctable.Read(pid)
		if !ok {
			return false
		}
		pid = p.Parent
	}
	return false
}

// join makes the run part of the job, before it looks at the terminal for the first time:
// no change of the window is lost. leave ends that, and may be called again.
func (r *run) join() (signals chan os.Signal, leave func()) {
	if !r.spec.Job {
		return nil, func() {}
	}
	signals = make(chan os.Signal, 8)
	signal.Notify(signals, jobSignals()...)
	jobs.enter(r)
	return signals, func() {
		signal.Stop(signals)
		jobs.leave(r)
	}
}

// stopKey is the keyboard's stops.
func (r *run) stopKey() bool {
	if !r.spec.Job || !leavesCtrlZ(r.st.ptys[0].master, r.tree.pid) || !stoppable() {
		return false
	}
	return r.tree.process.Signal(syscall.SIGSTOP) == nil // stops follows
}

// suspend stops the program where it can be let go on; stops follows.
func (r *run) suspend() {
	if r.spec.Job && stoppable() {
		_ = r.tree.process.Signal(syscall.SIGSTOP)
		if r.tree.stopped == nil { // the system does not tell of it
			r.stops()
		}
	}
}

// stops follows a program that has stopped, with the rest of its group.
func (r *run) stops() {
	if r.spec.Job && stoppable() {
		r.tree.group(syscall.SIGSTOP)
		r.st.leave()
		jobs.stop(r)
	}
}
