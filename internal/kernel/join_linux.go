package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process of one thread alone enters a user namespace, which no Go program is (setns(2)).
// So the helper forks, and the child, which is the copy of one thread, enters the namespaces
// of the session's network and becomes the helper again, in them. The parent stands for it:
// it stops when the child does, and ends as that ends.

// joining is what the child needs. It calls the kernel, and nothing of Go's runtime.
type joining struct {
	user, net, told uintptr // descriptors
	path            *byte
	argv, env       []*byte
	header          unix.CapUserHeader
	caps            [2]unix.CapUserData
	errno           syscall.Errno
}

// join runs the helper with args in the session's network, and returns its exit code.
func join(user, net int, args, env []string, errOut io.Writer) int {
	j := joining{user: uintptr(user), net: uintptr(net)}
	child, err := j.start(args, env)
	if err != nil {
		fmt.Fprintf(errOut, "superqode: join the session's network: %v\n", err)
		return 125
	}
	return standFor(child)
}

func (j *joining) start(args, env []string) (child int, err error) {
	const rights = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	j.header.Version, j.caps[0] = unix.LINUX_CAPABILITY_VERSION_3, unix.CapUserData{Effective: rights, Permitted: rights, Inheritable: rights}
	var errs [3]error
	j.path, errs[0] = unix.BytePtrFromString("/proc/self/exe")
	j.argv, errs[1] = syscall.SlicePtrFromStrings(args)
	j.env, errs[2] = syscall.SlicePtrFromStrings(env)
	told, tells, err := os.Pipe()
	if err = errors.Join(append(errs[:], err)...); err != nil {
		return 0, err
	}
	defer told.Close()
	j.told = tells.Fd()
	unix.CloseOnExec(int(j.user))
	unix.CloseOnExec(int(j.net))
	// These come to the child, too. TSTP stops this process where it would stop that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	child, errno := j.fork()
	_ = tells.Close()
	if errno != 0 {
		return 0, errno
	}
	why := make([]byte, unsafe.Sizeof(j.errno))
	if _, err := io.ReadFull(told, why); err == nil {
		return 0, syscall.Errno(binary.NativeEndian.Uint64(why))
	}
	return child, nil // its end was closed by execve
}

// fork returns in the parent alone.
//
//go:norace
func (j *joining) fork() (int, syscall.Errno) {
	child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || child != 0 {
		return int(child), errno
	}
	_, _, j.errno = unix.RawSyscall(unix.SYS_SETNS, j.user, unix.CLONE_NEWUSER, 0)
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall(unix.SYS_SETNS, j.net, unix.CLONE_NEWNET, 0)
	}
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0)
	}
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&j.header)), uintptr(unsafe.Pointer(&j.caps)), 0)
	}
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0, 0)
	}
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0, 0)
	}
	if j.errno == 0 {
		_, _, j.errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(j.path)), uintptr(unsafe.Pointer(&j.argv[0])), uintptr(unsafe.Pointer(&j.env[0])))
	}
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_WRITE, j.told, uintptr(unsafe.Pointer(&j.errno)), unsafe.Sizeof(j.errno))
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 125, 0, 0)
	}
}

// standFor waits for a process, stops when it stops, and ends as it does.
func standFor(child int) int {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // the child has left its own
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(child, &status, unix.WUNTRACED, nil)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return 125
		case err != nil:
		case status.Stopped():
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		case status.Signaled():
			dieBy(status.Signal())
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}

// dieBy ends this process by a signal, past the handlers of Go's runtime.
func dieBy(sig syscall.Signal) {
	var byDefault [8]uint64 // SIG_DFL, no flags, no mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), sig)
}
