package dirfd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Chmod sets the permissions (0777) of the file or folder name in parent. The handle
// is of the file itself (O_PATH needs no permission on it, O_NOFOLLOW refuses
// links), and a path through /proc works on every kernel, unlike fchmodat2.
func Chmod(parent int, name string, perm os.FileMode) error {
	fd, err := Open(parent, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), perm)
}
