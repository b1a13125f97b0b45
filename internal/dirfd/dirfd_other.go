//go:build !linux

package dirfd

import "golang.org/x/sys/unix"

// Flags to open a folder with.
const (
	PassFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	DirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// SetTime sets a file's mtime (and atime, to the same) through its handle, here
// in microseconds only: the system call for nanoseconds wants a name.
func SetTime(fd int, mtime unix.Timespec) error {
	tv := unix.NsecToTimeval(mtime.Nano())
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}

// openDeep reports false: there is no call that follows no link.
func openDeep(int, string) (fd int, ok bool) { return -1, false }
