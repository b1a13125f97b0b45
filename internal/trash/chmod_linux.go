package trash

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// chmodFolder gives the folder name in parent permissions 0700. The handle is
// of the folder itself (O_PATH needs no permission on it, O_NOFOLLOW refuses
// links), and a path through /proc works on every kernel, unlike fchmodat2.
func chmodFolder(parent int, name string) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}
