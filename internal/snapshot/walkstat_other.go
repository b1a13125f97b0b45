//go:build !linux || !(amd64 || arm64)

package snapshot

import "golang.org/x/sys/unix"

// statAt is lstat of the name at names[off:off+n].
func statAt(dir int, names []byte, off, n uint32, st *unix.Stat_t) error {
	name := string(names[off : off+n])
	return ignoringEINTR(func() error { return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}
