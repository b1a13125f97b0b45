package runner

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
	for pause := time.Millisecond; len(left) > 0 && time.Since(begin) < leftGrace+giveUp; pause = min(2*pause, 50*time.Millisecond) {
		for _, p := range left {
			if told[p.pid] != p.start {
				told[p.pid] = p.start
				found = append(found, Process{PID: p.pid, Args: commandLine(p.pid)})
				_ = send(p, unix.SIGTERM)
				_ = send(p, unix.SIGCONT)
			}
			if time.Since(begin) >= leftGrace {
				_ = send(p, unix.SIGKILL)
			}
		}
		time.Sleep(pause)
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
