package kernel

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prlimits are the numbers of prlimit64 by architecture of the call (AUDIT_ARCH_*): a
// 64-bit kernel also serves 32-bit programs.
var prlimits = map[string][][2]uint32{
	"amd64": {{0xc000003e, 302}, {0x40000003, 340}},
	"arm64": {{0xc00000b7, 261}, {0x40000028, 369}},
}

// keepLimits forbids the calling thread, and what it starts, to change the resource
// limits of another process: the kernel lets a program lower those of every process of
// its user, superqode's too. A process may still change its own, by the number 0.
// no_new_privs is set already, or the thread may do without (seccomp(2)).
func keepLimits() error {
	const (
		nr, arch, pid, limit = 0, 4, 16, 32 // offsets in struct seccomp_data, little-endian
		x32                  = 0x40000000
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	var prog []unix.SockFilter
	for _, p := range prlimits[runtime.GOARCH] {
		prog = append(prog,
			load(arch), jump(p[0], 0, 10),
			load(nr), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(x32)}, jump(p[1], 0, 7),
			load(pid), jump(0, 5, 0),
			load(limit), jump(0, 0, 2), load(limit+4), jump(0, 1, 0),
			ret(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	}
	if len(prog) == 0 {
		return nil
	}
	prog = append(prog, ret(unix.SECCOMP_RET_ALLOW))
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f)))
	if errno == 0 || errno == unix.ENOSYS || errno == unix.EINVAL { // the last two: a kernel without filters
		return nil
	}
	return fmt.Errorf("keep the limits of other processes: %w", errno)
}
