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

// openDeep opens a folder by its path below another one, to pass through. It follows no
// link and reports false where anything is in the way, or the kernel has no openat2.
func openDeep(dir int, path string) (fd int, ok bool) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags: PassFlags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	return fd, err == nil
}
