package swap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/dirfd"
)

func stateOf(st *unix.Stat_t) *State {
	return &State{
		Ino: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Mode: st.Mode,
		Nlink: uint32(min(uint64(st.Nlink), 1<<31)), UID: st.Uid, GID: st.Gid,
	}
}

// exchange exchanges two names in one step.
func exchange(a int, nameA string, b int, nameB string) error {
	return dirfd.Retry(func() error { return unix.Renameat2(a, nameA, b, nameB, unix.RENAME_EXCHANGE) })
}

// renameFree renames to a name that must be free.
func renameFree(a int, nameA string, b int, nameB string) error {
	return dirfd.Retry(func() error { return unix.Renameat2(a, nameA, b, nameB, unix.RENAME_NOREPLACE) })
}

// chmodAt changes the permission bits of the file name in dir if it is the one
// with the inode ino. The handle is of the file itself (O_PATH needs no
// permission on it, O_NOFOLLOW refuses to go through a link), and the way over
// /proc works on every kernel, unlike fchmodat2.
func chmodAt(dir int, name string, ino uint64, perm uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // opened for its number only
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Ino != ino || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ESTALE
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), os.FileMode(perm&0o777)|setBits(perm))
}

// setBits turns the set-id and sticky bits of a st_mode into Go's.
func setBits(perm uint32) os.FileMode {
	var m os.FileMode
	for bit, mode := range map[uint32]os.FileMode{
		unix.S_ISUID: os.ModeSetuid, unix.S_ISGID: os.ModeSetgid, unix.S_ISVTX: os.ModeSticky,
	} {
		if perm&bit != 0 {
			m |= mode
		}
	}
	return m
}

// syncAll flushes the file system of a handle.
func syncAll(fd int) error { return unix.Syncfs(fd) }
