// Package proctable looks at the running processes of this machine: who started
// one, from which file, with which arguments.
package proctable

// Process is what the system tells about a running process.
type Process struct {
	PID    int
	Parent int
	Start  uint64   // when it was started, in the system's own measure; number and start name a process for ever
	Exe    string   // the program's file; "" when the system does not tell
	Args   []string // as the program sees them; a program can change its own
}
