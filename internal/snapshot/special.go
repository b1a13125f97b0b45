package snapshot

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// specialName tells what a special file is: "fifo", "socket", "char 1:3" or
// "block 8:0". It stands in Entry.Link.
func specialName(mode uint32, rdev uint64) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return fmt.Sprintf("char %d:%d", unix.Major(rdev), unix.Minor(rdev))
	case unix.S_IFBLK:
		return fmt.Sprintf("block %d:%d", unix.Major(rdev), unix.Minor(rdev))
	}
	return "special"
}

// makeSpecial makes the special file that e describes, without its permission
// bits. Devices need root; a
// socket is only the name of one, for nobody listens there any more.
func makeSpecial(at int, name string, e *Entry) error {
	mode, dev := uint32(0), uint64(0)
	var major, minor uint32
	switch {
	case e.Link == "fifo":
		mode = unix.S_IFIFO
	case e.Link == "socket":
		mode = unix.S_IFSOCK
	case scanned(e.Link, "char %d:%d", &major, &minor):
		mode, dev = unix.S_IFCHR, unix.Mkdev(major, minor)
	case scanned(e.Link, "block %d:%d", &major, &minor):
		mode, dev = unix.S_IFBLK, unix.Mkdev(major, minor)
	default:
		return ErrSpecial
	}
	return mknodat(at, name, mode|0o600, dev)
}

func scanned(s, format string, major, minor *uint32) bool {
	n, err := fmt.Sscanf(s, format, major, minor)
	return err == nil && n == 2
}
