package frozen

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// looks counts the looks at the origin: how many were begun, and which state the last one
// found to be the origin's, 0 while it lasts. A look that begins after somebody asked is as
// good for him as one of his own, so that of many who ask at once, two look.
type looks struct{ begun, state int }

func looksFile(dir string) string { return filepath.Join(dir, "looks") }

// readLooks returns a number that no count exceeds where the file cannot be read.
func readLooks(dir string) (l looks) {
	data, err := atomicfile.Read(looksFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return looks{}
	}
	if n, serr := fmt.Sscan(string(data), &l.begun, &l.state); err != nil || serr != nil || n != 2 {
		return looks{begun: math.MaxInt32}
	}
	return l
}

func (l looks) write(dir string) error {
	return atomicfile.Loose.Write(looksFile(dir), fmt.Appendln(nil, l.begun, l.state), 0o600)
}
