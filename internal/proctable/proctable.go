// Package proctable reads the running processes of this machine: who started
// one, from which file, with which arguments.
package proctable

import "strconv"

// Process is what the system reports about a running process.
type Process struct {
	PID    int
	Parent int
	Start  uint64   // in the system's own unit; number and start together identify a process for ever
	Dead   bool     // it has ended and its parent has not looked yet, where the system says so
	Exe    string   // the program's file; "" if the system does not say
	Args   []string // as the program sees them; a program can change its own
}

// Name identifies the process for ever: "PID-START".
func (p Process) Name() string { return strconv.Itoa(p.PID) + "-" + strconv.FormatUint(p.Start, 10) }
