//go:build !linux

package snapshot

import "golang.org/x/sys/unix"

// mknodat is not there; special files are named as what could not be made.
func mknodat(int, string, uint32, uint64) error { return ErrSpecial }

func syncFS(int) error {
	unix.Sync()
	return nil
}
