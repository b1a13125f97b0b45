package snapshot

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// MovedError says that a path is not in the state in which it was looked at.
// Nothing was done to it. It wraps superqode.ErrConflict.
type MovedError struct {
	Path string
	More []string // other paths of which the same is true
}

// Error names the path.
func (e *MovedError) Error() string {
	if n := len(e.More); n > 0 {
		return fmt.Sprintf("%q and %d more changed since they were looked at", e.Path, n)
	}
	return fmt.Sprintf("%q changed since it was looked at", e.Path)
}

// Unwrap returns superqode.ErrConflict.
func (*MovedError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths.
func (e *MovedError) ErrorPaths() []string { return append([]string{e.Path}, e.More...) }

// collect adds the path of a *MovedError to that in e and returns nil; any other
// error it returns.
func (e *MovedError) collect(err error) error {
	m, ok := errors.AsType[*MovedError](err)
	if !ok {
		return err
	}
	if e.Path == "" {
		e.Path = m.Path
	} else if e.Path != m.Path {
		e.More = append(e.More, m.Path)
	}
	return nil
}

// err returns e if there is anything in it.
func (e *MovedError) err() error {
	if e.Path == "" {
		return nil
	}
	return e
}

// elsewhere takes a folder on the way to path that is none any more, or a link by
// now, for a move.
func elsewhere(err error, path string) error {
	if err == unix.ENOTDIR || err == unix.ELOOP || err == unix.ENOENT {
		return &MovedError{Path: path}
	}
	return err
}
