package proctable

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Read reads one running process. On macOS the kernel reports arguments of the
// same user's processes only (kern.procargs2: the number of arguments, the
// executable's path, NULs, the arguments, the environment).
func Read(pid int) (Process, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Process{}, false
	}
	p := Process{PID: pid, Parent: int(info.Eproc.Ppid), Start: uint64(info.Proc.P_starttime.Nano())}
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return p, err == nil
	}
	n := int(binary.LittleEndian.Uint32(raw))
	exe, rest, _ := bytes.Cut(raw[4:], []byte{0})
	p.Exe = string(exe)
	rest = bytes.TrimLeft(rest, "\x00")
	for range n {
		arg, after, ok := bytes.Cut(rest, []byte{0})
		p.Args = append(p.Args, string(arg))
		if !ok {
			break
		}
		rest = after
	}
	return p, true
}
