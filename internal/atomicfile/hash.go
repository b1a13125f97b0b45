package atomicfile

import (
	"crypto/sha256"
	"io"
)

// Hash reads a regular file and returns the sha256 of its bytes. The error is
// that of Open.
func Hash(path string) (sum [sha256.Size]byte, err error) {
	f, err := Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, err
}
