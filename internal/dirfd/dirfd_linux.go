package dirfd

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags to open a folder with. One that is passed through only needs no read
// permission (O_PATH); one that gets times and modes through its handle, or is
// listed, does.
const (
	PassFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	DirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// SetTime sets a file's mtime (and atime, to the same) through its handle.
func SetTime(fd int, mtime unix.Timespec) error {
	ts := [2]unix.Timespec{mtime, mtime}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
