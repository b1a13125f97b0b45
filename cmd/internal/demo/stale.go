package demo

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// A demo that is killed leaves its folder. The next one takes it away: a folder of
// the demo's name, of this user, that no link leads to, with the mark of a demo
// in it that was not to be kept and whose process holds it no more.

const (
	demoPrefix = "superqode-demo-"
	demoMark   = ".superqode-demo" // locked as long as the demo runs
	demoText   = "superqode demo: this folder goes when the demo ends, or with the next demo\n"
)

// markDemo puts the mark into a demo's folder and holds it.
func markDemo(dir string) (release func() error, err error) {
	path := filepath.Join(dir, demoMark)
	release, err = lockfile.TryLock(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, []byte(demoText), 0o600); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// sweepDemos removes what demos that were killed left in a folder for temporary
// files. What cannot be removed stays: the next demo tries again.
func sweepDemos(tmp string) {
	if tmp == "" {
		tmp = os.TempDir()
	}
	names, _ := filepath.Glob(filepath.Join(text.QuotePattern(tmp), demoPrefix+"*")) // the pattern is sound
	for _, dir := range names {
		if ownFolder(dir) && abandonedDemo(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// ownFolder reports whether path is a folder of this user, and no link to one.
func ownFolder(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}

func abandonedDemo(dir string) bool {
	path := filepath.Join(dir, demoMark)
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() != int64(len(demoText)) {
		return false
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != demoText {
		return false
	}
	release, err := lockfile.TryLock(path)
	if err != nil {
		return false // it runs
	}
	return release() == nil
}
