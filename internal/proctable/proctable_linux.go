package proctable

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Read reads one running process.
func Read(pid int) (Process, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Process{}, false
	}
	// proc_pid_stat(5): the name, in parentheses, may hold anything.
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return Process{}, false
	}
	f := bytes.Fields(stat[i+1:])
	if len(f) < 20 {
		return Process{}, false
	}
	p := Process{PID: pid}
	p.Parent, _ = strconv.Atoi(string(f[1]))
	p.Start, _ = strconv.ParseUint(string(f[19]), 10, 64)
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
