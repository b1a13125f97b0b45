package workspace

import (
	"errors"
	"syscall"
)

// move renames from one open directory to another: neither path is looked at again, so
// that no link which was swapped in on the way is followed.
func (d *Dir) move(from, to at) error {
	a, err := from.dir.Open(".")
	if err != nil {
		return err
	}
	b, err := to.dir.Open(".")
	if err != nil {
		return errors.Join(err, a.Close())
	}
	err = syscall.Renameat(int(a.Fd()), from.name, int(b.Fd()), to.name)
	return errors.Join(err, a.Close(), b.Close())
}
