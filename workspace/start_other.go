//go:build !linux

package workspace

import "os"

// start has no way here to begin in an open directory, or to take the network away.
func start(_ *os.File, net Net) func(string, []string, *os.ProcAttr) (string, []string, error) {
	if net == NetHost {
		return nil
	}
	return func(string, []string, *os.ProcAttr) (string, []string, error) { return "", nil, ErrNotAvailable }
}

// inside is a path to an open directory for a process that this one starts.
func inside(dir *os.File) string { return dir.Name() }
