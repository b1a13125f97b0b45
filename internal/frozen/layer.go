package frozen

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// layer is the folder of a layer, or of what was written over some: a path in it may be
// longer than what a system call takes.
type layer struct {
	root int
	at   *dirfd.Cursor
}

func openLayer(dir string) (*layer, error) {
	root, err := dirfd.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return &layer{root, dirfd.NewCursor(root)}, nil
}

func (l *layer) Close() error { return errors.Join(l.at.Leave(), unix.Close(l.root)) }

// folder returns a path of a folder, "" for the layer itself, that is one until the next call.
func (l *layer) folder(path superqode.RelPath) (string, error) {
	fd, err := l.at.Enter(path)
	return fmt.Sprintf("/proc/self/fd/%d", fd), err
}

// stat looks at what the layer has at a path. The error is an errno, ENOENT where it has
// nothing.
func (l *layer) stat(path superqode.RelPath) (snapshot.Entry, error) {
	dir, name := dirfd.Split(path)
	if name == "" {
		name = "."
	}
	fd, err := l.at.Enter(dir)
	if err == nil {
		var e snapshot.Entry
		if e, err = snapshot.StatAt(fd, name); err == nil {
			return e, nil
		}
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = unix.ENOENT
	}
	return snapshot.Entry{}, err
}
