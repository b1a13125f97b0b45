package life

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestOpenFailsUnderTheLock holds that a session whose folder cannot be filled is
// given up at once: whoever makes it holds the project's lock, and must not wait
// for it.
func TestOpenFailsUnderTheLock(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	m := managerOf(f)
	folders := filepath.Join(m.Home, "working", "*", "sessions", "*")
	m.Now = func() time.Time { // is asked once more when the session's folder is there and empty
		made, _ := filepath.Glob(folders)
		for _, dir := range made {
			if err := os.WriteFile(filepath.Join(dir, "bin"), nil, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
		return time.Now()
	}
	s, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir})
	if err == nil {
		t.Fatal(s.Close(), "opened")
	}
	if !errors.Is(err, os.ErrExist) || strings.Contains(err.Error(), "undo") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(folders); left != nil {
		t.Error(left)
	}
}
