//go:build !linux

package snapshot

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	srcDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	dstDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// cloneFile is not built for this system: files are copied.
func cloneFile(in, fd int) error { return syscall.ENOTSUP }

func noCloneHere(err error) bool { return true }

// copyFileRange does not exist on this system: files are read and written.
func copyFileRange(in, fd int, off int64, n int) (int, error) { return 0, syscall.ENOTSUP }

// nextData does not ask for holes on this system: all is data.
func nextData(fd int, off, end int64) (data, hole int64, err error) { return off, end, nil }

// futimens sets a file's mtime (and atime, to the same) through its handle, here
// in microseconds only: the system call for nanoseconds wants a name.
func futimens(fd int, mtime unix.Timespec) error {
	tv := unix.NsecToTimeval(mtime.Nano())
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}

// unixStat keeps what identifies a file's state.
func unixStat(st *unix.Stat_t) Stat {
	return Stat{
		Dev: uint64(st.Dev), Ino: st.Ino, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		UID: st.Uid, GID: st.Gid, Nlink: uint32(st.Nlink),
	}
}
