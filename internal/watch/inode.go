package watch

import (
	"os"
	"syscall"
)

// inode returns a file's number, 0 if the system has none.
func inode(st os.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
