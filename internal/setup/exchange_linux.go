package setup

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchangeAt swaps two names of an open folder.
func exchangeAt(dir *os.File, a, b string) error {
	fd := int(dir.Fd())
	return unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
}
