package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// LockPath is the file that is locked while a session is alive.
func LockPath(sessionDir string) string { return filepath.Join(sessionDir, "lock") }

// SessionNames lists the names in a project's sessions folder that are session
// ids.
func (p Project) SessionNames() ([]string, error) {
	names, err := Names(p.SessionsPath())
	if errors.Is(err, os.ErrPermission) && p.Reopen() == nil {
		names, err = Names(p.SessionsPath())
	}
	return slices.DeleteFunc(names, func(n string) bool {
		_, err := superqode.ParseSessionID(n)
		return err != nil
	}), err
}

// MayBeOpen reports whether a session's folder still has one of those that its end takes
// away last, when all is well: only then is its record to be read by who asks about what
// is open. There may be a thousand others.
func MayBeOpen(sessionDir string) bool {
	return atomicfile.Exists(filepath.Join(sessionDir, "tmp")) || atomicfile.Exists(filepath.Join(sessionDir, "aside"))
}

// Names lists a folder in no order; none is empty.
func Names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // or a stray file above it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}
