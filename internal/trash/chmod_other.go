//go:build !linux

package trash

import "golang.org/x/sys/unix"

// chmodFolder gives the folder name in parent permissions 0700, and follows no
// link.
func chmodFolder(parent int, name string) error {
	return unix.Fchmodat(parent, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
