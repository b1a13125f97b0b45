//go:build !linux

package treecopy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// cloneFile is not built for this system: files are copied.
func cloneFile(in, fd int) error { return syscall.ENOTSUP }

func noCloneHere(err error) bool { return true }

// copyFileRange does not exist on this system: files are read and written.
func copyFileRange(in, fd int, off int64, n int) (int, error) { return 0, syscall.ENOTSUP }

// nextData does not ask for holes on this system: all is data.
func nextData(fd int, off, end int64) (data, hole int64, err error) { return off, end, nil }

// mknodat is not there; special files are named as what could not be made.
func mknodat(int, string, uint32, uint64) error { return ErrSpecial }

func syncFS(int) error {
	unix.Sync()
	return nil
}
