package mode

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// maxOpenings bounds how often a workspace is scanned again because folders in
// it had to be opened first; each scan gets at least one level deeper.
const maxOpenings = 64

// opened is a path whose permission bits were widened for reading.
type opened struct {
	path string
	perm os.FileMode
}

// ScanAll scans the workspace. A program may take the read permission from what
// it made, or was given; the workspace belongs to superqode's user, so that is
// no reason not to know what is there. Close gives the permissions back.
func (l *Look) ScanAll(ctx context.Context, root string, opt snapshot.ScanOptions) (err error) {
	for range maxOpenings {
		if l.Final, l.Problems, err = snapshot.Scan(ctx, root, opt); err != nil {
			return err
		}
		if !l.Open(root, l.Problems) {
			return nil
		}
	}
	return nil
}

// HashAll reads the contents that no stat data vouch for.
func (l *Look) HashAll(ctx context.Context, root string) error {
	problems, err := snapshot.HashMissing(ctx, l.Final)
	if err == nil && l.Open(root, problems) {
		problems, err = snapshot.HashMissing(ctx, l.Final)
	}
	l.Problems = append(l.Problems, problems...)
	for _, o := range l.opened { // the permissions that count are the program's
		if e := l.Final.Find(o.path); e != nil {
			e.Perm = uint32(o.perm.Perm()) | e.Perm&^0o777
		}
	}
	return err
}

// Open widens the permissions of the files and folders that could not be read,
// and reports whether there was one.
func (l *Look) Open(dir string, problems []snapshot.Problem) (any bool) {
	if l.InPlace || len(problems) == 0 {
		return false
	}
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, p := range problems {
		if p.Path == "" || !errors.Is(p.Err, os.ErrPermission) {
			continue
		}
		st, err := root.Lstat(p.Path)
		if err != nil || !st.Mode().IsRegular() && !st.IsDir() {
			continue
		}
		mode := st.Mode() & (os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky)
		wide := mode | 0o400
		if st.IsDir() {
			wide |= 0o100
		}
		if wide == mode || root.Chmod(p.Path, wide) != nil {
			continue
		}
		l.opened = append(l.opened, opened{p.Path, mode})
		any = true
	}
	return any
}

// passOver takes files that cannot be read in spite of all for what they were,
// or for not there: they are named as problems, and nothing is said about what
// they hold.
func (l *Look) passOver() {
	l.Final.Entries = slices.DeleteFunc(l.Final.Entries, func(e snapshot.Entry) bool {
		return e.Kind == snapshot.File && e.ID.IsZero() && l.Base.Find(e.Path) == nil
	})
	for i := range l.Final.Entries {
		e := &l.Final.Entries[i]
		if e.Kind != snapshot.File || !e.ID.IsZero() {
			continue
		}
		if old := l.Base.Find(e.Path); old.Kind == snapshot.File {
			e.ID, e.Size = old.ID, old.Size
		} else {
			*e = *old
		}
	}
}

// Close gives the opened paths their permissions back, the last one first: a
// folder that is closed hides what is in it.
func (l *Look) Close(dir string) error {
	if len(l.opened) == 0 {
		return nil
	}
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, o := range slices.Backward(l.opened) {
		err = errors.Join(err, root.Chmod(o.path, o.perm))
	}
	l.opened = nil
	l.Seen = nil // it shows bits that are no more
	return err
}
