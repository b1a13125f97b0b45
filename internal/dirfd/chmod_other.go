//go:build !linux

package dirfd

import (
	"os"

	"golang.org/x/sys/unix"
)

// Chmod sets the permissions (0777) of the file or folder name in parent, and follows
// no link.
func Chmod(parent int, name string, perm os.FileMode) error {
	return unix.Fchmodat(parent, name, uint32(perm), unix.AT_SYMLINK_NOFOLLOW)
}
