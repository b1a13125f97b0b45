package treecopy

import (
	"syscall"

	"golang.org/x/sys/unix"
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

// mknodat makes a special file.
func mknodat(at int, name string, mode uint32, dev uint64) error {
	return unix.Mknodat(at, name, mode, int(dev))
}

func syncFS(fd int) error { return unix.Syncfs(fd) }
