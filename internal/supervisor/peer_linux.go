package supervisor

import (
	"cmp"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peer asks the kernel who is at the other end (SO_PEERCRED).
func peer(c *net.UnixConn) (pid, uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = cmp.Or(cerr, err); err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), int(cred.Uid), nil
}

// viaHandle names a file in an open folder by a path that is always short.
func viaHandle(dir *os.File, name string) (string, error) {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), nil
}
