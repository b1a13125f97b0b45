package runner

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// EndMarked ends every process that was started with the environment entry marker
// (Spec.Marker), and what descends from it: TERM, and KILL after grace. It is for
// the programs of a superqode that was killed. This process and its ancestors are
// spared, as somebody may ask for it from within. The result names all that were
// found, Alive where they could not be ended.
func EndMarked(ctx context.Context, marker string, grace time.Duration) []Process {
	var found []Process
	named := map[int]uint64{}
	begin := time.Now()
	pause := time.Millisecond
	for {
		left := marked(marker)
		for _, p := range left {
			if named[p.pid] != p.start {
				named[p.pid] = p.start
				found = append(found, Process{PID: p.pid, Args: commandLine(p.pid)})
				_ = send(p, unix.SIGTERM)
				_ = send(p, unix.SIGCONT)
			}
			if time.Since(begin) >= grace || ctx.Err() != nil {
				_ = send(p, unix.SIGKILL)
			}
		}
		if len(left) == 0 || time.Since(begin) >= grace+giveUp || ctx.Err() != nil {
			alive := map[int]bool{}
			for _, p := range marked(marker) {
				alive[p.pid] = true
			}
			for i := range found {
				found[i].Alive = alive[found[i].PID]
			}
			return found
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
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
		if !spared[pid] && !p.dead && hasEnv(pid, marker) {
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
