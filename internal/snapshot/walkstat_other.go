//go:build !linux || !(amd64 || arm64)

package snapshot

import (
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// statAt is lstat of the name at names[off:off+n].
func statAt(dir int, names []byte, off, n uint32, st *unix.Stat_t) error {
	name := string(names[off : off+n])
	return dirfd.Retry(func() error { return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}
