//go:build !linux

package swap

import (
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/dirfd"
)

func stateOf(st *unix.Stat_t) *State {
	return &State{
		Ino: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Mode: uint32(st.Mode),
		Nlink: uint32(st.Nlink), UID: st.Uid, GID: st.Gid,
	}
}

// exchange exchanges two names in one step.
func exchange(a int, nameA string, b int, nameB string) error {
	return dirfd.Retry(func() error { return unix.RenameatxNp(a, nameA, b, nameB, unix.RENAME_SWAP) })
}

// renameFree renames to a name that must be free.
func renameFree(a int, nameA string, b int, nameB string) error {
	return dirfd.Retry(func() error { return unix.RenameatxNp(a, nameA, b, nameB, unix.RENAME_EXCL) })
}

// chmodAt changes the permission bits of name in dir and follows no link.
func chmodAt(dir int, name string, ino uint64, perm uint32) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Ino != ino {
		return unix.ESTALE
	}
	return unix.Fchmodat(dir, name, perm, unix.AT_SYMLINK_NOFOLLOW)
}

// syncAll flushes every file system: there is no call for one.
func syncAll(int) error {
	unix.Sync()
	return nil
}
