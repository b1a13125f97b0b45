//go:build amd64 || arm64

package snapshot

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// statAt is lstat of the name at names[off:off+n], which a NUL byte follows. It
// hands the kernel the name where it lies; unix.Fstatat would copy each.
func statAt(dir int, names []byte, off, n uint32, st *unix.Stat_t) error {
	_ = names[off+n]
	for {
		_, _, errno := unix.Syscall6(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(&names[off])), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return errno
	}
}
