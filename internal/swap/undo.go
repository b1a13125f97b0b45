package swap

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// Undo undoes what Commit did, in reverse order, and continues after a failure.
// It names a path that somebody changed after Commit put it there, and leaves
// it as it is; what was there before is beside it until Clean.
func (d *Dir) Undo(p *Plan) ([]Left, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var left []Left
	errs := d.finishFolders(p, 0o700)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := &p.Steps[i]
		failpoint.Hit("apply.undo." + string(s.Op))
		err := d.undo(p, i)
		if moved, ok := errors.AsType[*MovedError](err); ok {
			left = append(left, Left{string(s.Path), moved})
		} else if err != nil {
			errs = errors.Join(errs, &os.PathError{Op: "take back", Path: string(s.Path), Err: err})
		}
	}
	return left, errors.Join(errs, d.sync(p))
}

func (d *Dir) undo(p *Plan, i int) error {
	s := &p.Steps[i]
	fresh, old := p.names(i)
	switch s.Op {
	case Put:
		if s.Was == nil {
			return d.unmake(s, fresh)
		}
		return d.unput(s, fresh, old)
	case Remove:
		parked, err := d.state(1, old)
		if err != nil || !s.Was.is(parked) {
			return err
		}
		return d.move(old, string(s.Path))
	case Mkdir:
		return ignoreFull(d.unlinkDir(string(s.Path)))
	case Rmdir:
		return d.remake(s)
	}
	now, err := d.state(0, string(s.Path))
	if err != nil || !s.changed().is(now) || s.Was.is(now) {
		return err
	}
	dir, name, err := d.at(0, string(s.Path))
	if err != nil {
		return err
	}
	return chmodAt(dir, name, s.Was.Ino, s.Was.Mode&0o7777)
}

// unmake removes a file that was put where nothing was.
func (d *Dir) unmake(s *Step, fresh string) error {
	aside, err := d.state(1, fresh)
	if err != nil || aside != nil || s.New == nil { // it was not put there yet
		return err
	}
	now, err := d.state(0, string(s.Path))
	if err != nil || now == nil {
		return err
	}
	if !s.New.is(now) {
		return &MovedError{string(s.Path)}
	}
	return d.park(string(s.Path), fresh, s.New)
}

// unput puts the old file back in its place.
func (d *Dir) unput(s *Step, fresh, old string) error {
	aside, err := d.state(1, fresh)
	if err != nil {
		return err
	}
	parked, err := d.state(1, old)
	if err != nil {
		return err
	}
	from := fresh
	if s.Was.is(parked) { // where names cannot be exchanged
		from = old
	} else if !s.Was.is(aside) {
		return nil // it never left its place
	}
	now, err := d.state(0, string(s.Path))
	switch {
	case err != nil:
		return err
	case now == nil:
		return d.move(from, string(s.Path))
	case !s.New.is(now):
		return &MovedError{string(s.Path)}
	case from == old: // the staged file's name is free
		if err := d.park(string(s.Path), fresh, s.New); err != nil {
			return err
		}
		return d.move(old, string(s.Path))
	}
	if err := d.exchange(fresh, string(s.Path)); err != nil {
		return err
	}
	if aside, err = d.state(1, fresh); err == nil && !s.New.is(aside) { // somebody wrote there at the last moment
		err = errors.Join(&MovedError{string(s.Path)}, d.exchange(fresh, string(s.Path)))
	}
	return err
}

// remake creates a removed folder again.
func (d *Dir) remake(s *Step) error {
	dir, name, err := d.at(0, string(s.Path))
	if err != nil {
		return err
	}
	err = unix.Mkdirat(dir, name, 0o700)
	if err == unix.EEXIST {
		return nil // it was not removed, or somebody was faster
	}
	if err != nil {
		return err
	}
	now, err := d.state(0, string(s.Path))
	if err != nil || now == nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := unix.Fchownat(dir, name, int(s.Was.UID), int(s.Was.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return chmodAt(dir, name, now.Ino, s.Was.Mode&0o7777)
}

func ignoreFull(err error) error {
	if isGone(err) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// Clean deletes what Commit and Undo left beside the places: old files, or new
// ones that were undone. If somebody (a program that had it open) wrote to a
// file after it was out of the way, Clean first calls keep with its path, so
// that nothing is lost; if keep returns an error the file stays.
func (d *Dir) Clean(p *Plan, keep func(path string, s *Step) error) error {
	if err := p.Check(); err != nil {
		return err
	}
	var errs error
	for i := range p.Steps {
		s := &p.Steps[i]
		fresh, old := p.names(i)
		if s.Op == Mkdir {
			errs = errors.Join(errs, ignoreFull(d.unlinkDir(fresh)))
		}
		if s.Op != Put && s.Op != Remove {
			continue
		}
		failpoint.Hit("apply.clean")
		for _, path := range []string{fresh, old} {
			st, err := d.state(1, path)
			if err == nil && st != nil {
				if !s.New.is(st) && !s.Was.is(st) {
					err = keep(path, s)
				}
				if err == nil {
					err = d.unlink(path)
				}
			}
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
