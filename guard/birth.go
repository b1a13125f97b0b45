package guard

import (
	"os"
	"path/filepath"
	"time"
)

// madeSince reports whether a folder was made after a moment. Where the file
// system does not tell when that was, the oldest thing in it counts; what can not
// be told is old.
func madeSince(dir string, when time.Time) bool {
	if when.IsZero() {
		return false
	}
	if birth, ok := birthTime(dir); ok {
		return birth.After(when)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return false
	}
	for _, e := range entries {
		if st, err := os.Lstat(filepath.Join(dir, e.Name())); err != nil || !st.ModTime().After(when) {
			return false
		}
	}
	return true
}
