//go:build !linux

package workspace

import (
	"errors"
	"syscall"
)

// move renames below the root. The syscall package has no rename between two open
// directories here: a link that is swapped in while it runs is followed, inside the root.
func (d *Dir) move(from, to at) error {
	err := d.root.Rename(from.full, to.full)
	if errors.Is(err, syscall.EEXIST) && d.root.Remove(to.full) == nil { // an empty directory
		err = d.root.Rename(from.full, to.full)
	}
	return err
}
