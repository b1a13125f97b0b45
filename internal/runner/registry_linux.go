package runner

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Subreaper makes this process the reaper of orphaned descendants, so that no
// program can leave its session by a double fork. It may be called any number
// of times; Run calls it too.
func Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of descendants: %w", err)
	}
	return nil
}

// registry mirrors the part of the kernel's table of our children that belongs
// to runs. A process has one such table, and so one registry.
type registry struct {
	mu    sync.Mutex // held while a program starts, so nobody takes its pid for an orphan's
	trees map[int]*tree
	stop  chan struct{}
	done  chan struct{}
	self  int
	sid   int

	own    map[int]uint64 // what this process started itself, in sessions of their own: pid → start time
	others map[int]bool   // the children of our threads but the first, as of this look; nil: not read yet
}

// children is the registry of this process. It is the one variable at package
// level: two registries would take each other's programs for orphans.
var children = registry{trees: map[int]*tree{}}

// begin notes, before the first of some programs starts, what our first thread has for
// children: they are none of the programs'. mu is held.
func (g *registry) begin() {
	if len(g.trees) > 0 {
		return
	}
	own, buf := map[int]uint64{}, make([]byte, 1024)
	for _, pid := range slices.Concat(slices.Collect(maps.Keys(g.own)), childrenOf(os.Getpid())) {
		if p, ok := readProc(pid, buf); ok && (g.own[pid] == 0 || g.own[pid] == p.start) {
			own[pid] = p.start
		}
	}
	g.own = own
}

// childrenOf returns the children of one of our threads. While one of them ends, the
// kernel may leave out another one.
func childrenOf(thread int) (pids []int) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread)) // not there: it knows of none
	for _, word := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// started reports whether a child of ours is one that this process started: the kernel gives
// those that it adopts to its first thread. mu is held.
func (g *registry) started(p proc) bool {
	if g.own[p.pid] == p.start && p.start != 0 {
		return true
	}
	if g.others == nil {
		g.others = map[int]bool{}
		threads, _ := os.ReadDir("/proc/self/task") // none: all are adopted
		for _, name := range threads {
			thread, _ := strconv.Atoi(name.Name())
			for range 2 {
				for _, pid := range childrenOf(thread) {
					g.others[pid] = thread != g.self || g.others[pid]
				}
			}
		}
	}
	return g.others[p.pid]
}

// StartApart starts a command in a session of its own that no run takes for a process of its
// program's, and waits for it in the background.
func StartApart(cmd *exec.Cmd) error {
	children.mu.Lock()
	defer children.mu.Unlock()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	if p, ok := readProc(cmd.Process.Pid, make([]byte, 1024)); ok {
		if children.own == nil {
			children.own = map[int]uint64{}
		}
		children.own[p.pid] = p.start
	}
	go func() { _, _ = cmd.Process.Wait() }() // or it would stay a zombie; its pipes are the caller's
	return nil
}

// add registers a started program; mu is held.
func (g *registry) add(t *tree) {
	g.trees[t.pid] = t
	if g.stop == nil {
		g.stop, g.done = make(chan struct{}), make(chan struct{})
		go g.reapLoop(g.stop, g.done)
	}
}

// remove reaps a program and forgets it in one step, so that nobody takes the
// zombie for an orphan, or a new program with the same number for this one. The
// last one ends the reaping.
func (g *registry) remove(t *tree, reap func() (*os.ProcessState, error)) (*os.ProcessState, error) {
	g.mu.Lock()
	st, err := reap()
	delete(g.trees, t.pid)
	var done chan struct{}
	if len(g.trees) == 0 {
		close(g.stop)
		done, g.stop = g.done, nil
	}
	g.mu.Unlock()
	if done != nil {
		<-done
	}
	return st, err
}

// reapLoop reaps orphans while programs run, so that a build with ten thousand
// detached helpers does not fill the process table. It looks at most 20 times a
// second.
func (g *registry) reapLoop(stop, done chan struct{}) {
	defer close(done)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCHLD)
	defer signal.Stop(c)
	for {
		select {
		case <-stop:
			return
		case <-c:
		}
		select {
		case <-stop: // whoever finishes a program reaps, too
			return
		case <-time.After(50 * time.Millisecond):
			g.mu.Lock()
			g.reap(nil)
			g.mu.Unlock()
		}
	}
}

// reap takes the zombies that we adopted, each by its exact pid; mu is held.
// The kernel shows one ended child at a time: if somebody else waits for that
// one (a program, a git), the process table shows the others.
func (g *registry) reap(procs map[int]proc) {
	buf := make([]byte, 1024)
	var adopted []int
	if procs == nil {
		adopted = childrenOf(os.Getpid())
	}
	g.others = nil
	for procs == nil {
		pid, err := waitid(unix.P_ALL, 0, unix.WNOHANG)
		if err != nil || pid == 0 {
			return
		}
		p, ok := readProc(pid, buf)
		if !ok || !g.orphan(p) || len(adopted) > 0 && !slices.Contains(adopted, pid) {
			procs, g.others = allProcs(), nil
			break
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	for pid, p := range procs {
		if p.dead && g.orphan(p) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// orphan reports whether p is a child that we adopted from some program; mu is
// held.
func (g *registry) orphan(p proc) bool {
	if g.self == 0 {
		g.self = os.Getpid()
		g.sid, _ = unix.Getsid(0)
	}
	return p.ppid == g.self && p.sid != g.sid && g.trees[p.pid] == nil && !g.started(p)
}

// alone reports whether no other run may still claim an orphan; mu is held.
// Runs take their last look one after the other, so the last of several that
// end together is alone.
func (g *registry) alone(t *tree) bool {
	for _, o := range g.trees {
		if o != t && !o.leaving {
			return false
		}
	}
	return true
}
