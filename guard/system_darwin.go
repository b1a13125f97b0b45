package guard

import (
	"time"

	"golang.org/x/sys/unix"
)

// birthTime is when a file was made.
func birthTime(path string) (time.Time, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return time.Time{}, false
	}
	return time.Unix(st.Btim.Unix()), true
}

// peer is the process that listens at the other end of a connected socket.
func peer(fd int) (pid int, err error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}
