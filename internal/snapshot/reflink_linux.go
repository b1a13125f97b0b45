package snapshot

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Source folders are only passed through, so O_PATH does, which needs no read
// permission; destination folders get times and modes through their handle.
const (
	srcDirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	dstDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// cloneFile makes fd share in's blocks (FICLONE: btrfs, xfs, bcachefs, overlayfs
// above them).
func cloneFile(in, fd int) error { return unix.IoctlFileClone(fd, in) }

// noCloneHere reports whether a failed clone means that none will work between
// these two file systems. EINVAL does not: it can be about one file's flags.
func noCloneHere(err error) bool {
	switch err {
	case syscall.EOPNOTSUPP, syscall.EXDEV, syscall.ENOTTY, syscall.ENOSYS, syscall.EPERM:
		return true
	}
	return false
}

// copyFileRange copies up to n bytes at off inside the kernel.
func copyFileRange(in, fd int, off int64, n int) (int, error) {
	to := off
	return unix.CopyFileRange(in, &off, fd, &to, n, 0)
}

// nextData returns the next range of data at or after off; both are end when
// there is none.
func nextData(fd int, off, end int64) (data, hole int64, err error) {
	data, err = unix.Seek(fd, off, unix.SEEK_DATA)
	if err == syscall.ENXIO {
		return end, end, nil
	}
	if err == nil {
		hole, err = unix.Seek(fd, data, unix.SEEK_HOLE)
	}
	return min(data, end), min(hole, end), err
}

// futimens sets a file's mtime (and atime, to the same) through its handle.
func futimens(fd int, mtime unix.Timespec) error {
	ts := [2]unix.Timespec{mtime, mtime}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// unixStat keeps what identifies a file's state.
func unixStat(st *unix.Stat_t) Stat {
	return Stat{
		Dev: st.Dev, Ino: st.Ino, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		UID: st.Uid, GID: st.Gid, Nlink: uint32(st.Nlink), //nolint:unconvert // its width differs between architectures
	}
}
