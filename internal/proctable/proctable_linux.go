package proctable

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Stat is the fields of /proc/<pid>/stat behind the process's name.
type Stat [][]byte

// ParseStat reads proc_pid_stat(5). The name, in parentheses, may hold anything,
// so it ends at the last ")". ok is false for what does not have all fields up to
// the resident pages.
func ParseStat(stat []byte) (s Stat, ok bool) {
	i := bytes.LastIndexByte(stat, ')')
	s = bytes.Fields(stat[i+1:])
	return s, i >= 0 && len(s) > resident-3
}

// Numbers of fields in proc_pid_stat(5).
const (
	parent   = 4
	start    = 22
	resident = 24
)

// Int returns a field by its number in the manual, 0 for one that is no number.
func (s Stat) Int(field int) int64 {
	n, _ := strconv.ParseInt(string(s[field-3]), 10, 64)
	return n
}

// Parent is the parent's number.
func (s Stat) Parent() int { return int(s.Int(parent)) }

// Start is when the process was started, in clock ticks since boot.
func (s Stat) Start() uint64 { return uint64(s.Int(start)) }

// Resident is the process's resident pages.
func (s Stat) Resident() int64 { return s.Int(resident) }

// Threads is how many threads the process has.
func (s Stat) Threads() int { return int(s.Int(20)) }

// Dead reports a zombie, nothing of which runs. A process whose first thread has
// ended shows Z while other threads run on.
func (s Stat) Dead() bool {
	state := s[0][0]
	return state == 'X' || state == 'Z' && s.Threads() <= 1
}

// Read reads one running process.
func Read(pid int) (Process, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	raw, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Process{}, false
	}
	stat, ok := ParseStat(raw)
	if !ok {
		return Process{}, false
	}
	p := Process{PID: pid, Parent: stat.Parent(), Start: stat.Start(), Dead: stat.Dead()}
	p.Exe, _ = os.Readlink(dir + "/exe")
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return Process{}, false
	}
	if len(line) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	}
	return p, true
}
