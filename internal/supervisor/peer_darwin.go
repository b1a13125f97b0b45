package supervisor

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peer asks the kernel who is at the other end (LOCAL_PEERCRED, LOCAL_PEERPID).
func peer(c *net.UnixConn) (pid, uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, serr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); serr != nil {
			return
		}
		uid = int(cred.Uid)
		pid, serr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	return pid, uid, errors.Join(err, serr)
}

// viaHandle has no answer on macOS, which has no /proc.
func viaHandle(dir *os.File, _ string) (string, error) {
	return "", errors.New("the path of the session's socket below " + dir.Name() + " is longer than 103 bytes; choose a shorter SUPERQODE_HOME")
}
