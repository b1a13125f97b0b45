package supervisor

import (
	"errors"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path that fits into sockaddr_un on every system
// that superqode runs on (104 bytes on macOS, 108 on Linux, with a final NUL).
const maxSocketPath = 103

// socketAddr returns an address for a socket file. If its path is too long for
// a socket address, the address leads through an open handle of its folder.
func socketAddr(path string) (addr string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	short, err := viaHandle(dir, filepath.Base(path))
	if err != nil {
		return "", nil, errors.Join(err, dir.Close())
	}
	return short, func() { _ = dir.Close() }, nil // read-only handle: closing it can lose nothing
}
