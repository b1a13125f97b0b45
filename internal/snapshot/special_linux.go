package snapshot

import "golang.org/x/sys/unix"

// mknodat makes a special file.
func mknodat(at int, name string, mode uint32, dev uint64) error {
	return unix.Mknodat(at, name, mode, int(dev))
}

func syncFS(fd int) error { return unix.Syncfs(fd) }
