package swap

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Commit puts everything in its place and returns when that would survive a
// power cut. The first path that is not as the plan says ends it with a
// *MovedError. After an error, Undo; what Commit did not reach is harmless to
// it. It skips steps that were done before.
func (d *Dir) Commit(ctx context.Context, p *Plan) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	for i := range p.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &p.Steps[i]
		err := failpoint.Err("apply." + string(s.Op))
		if err == nil {
			err = d.do(p, i)
		}
		if err != nil {
			return stepError(s, err)
		}
	}
	failpoint.Hit("apply.placed")
	if err := d.finishFolders(p, 0); err != nil {
		return err
	}
	return d.sync(p)
}

func stepError(s *Step, err error) error {
	if _, moved := errors.AsType[*MovedError](err); moved {
		return err
	}
	return &os.PathError{Op: string(s.Op), Path: string(s.Path), Err: err}
}

func (d *Dir) do(p *Plan, i int) error {
	switch s := &p.Steps[i]; s.Op {
	case Put:
		return d.put(p, i)
	case Remove:
		return d.remove(p, i)
	case Mkdir:
		return d.mkdir(p, i)
	case Rmdir:
		return d.rmdir(s)
	default:
		return d.chmod(s)
	}
}

// put exchanges the staged file with what is in its place, or renames it to the
// free name.
func (d *Dir) put(p *Plan, i int) error {
	s := &p.Steps[i]
	fresh, old := p.names(i)
	aside, err := d.state(1, fresh)
	if err != nil {
		return err
	}
	now, err := d.state(0, string(s.Path))
	switch {
	case err != nil:
		return err
	case s.New == nil:
		return errors.New("it was not staged")
	case aside == nil && (s.New.is(now) || s.Was == nil && now != nil), s.Was != nil && s.Was.is(aside):
		return nil // done before; whoever changed it since did so afterwards
	case !s.New.is(aside):
		return &MovedError{string(s.Path)}
	case now == nil:
		if s.Was != nil {
			parked, err := d.state(1, old)
			if err != nil {
				return err
			}
			if !s.Was.is(parked) {
				return &MovedError{string(s.Path)}
			}
		}
		return d.move(fresh, string(s.Path))
	case s.Was == nil || !s.Was.untouched(now):
		return &MovedError{string(s.Path)}
	}
	err = d.exchange(fresh, string(s.Path))
	if unsupported(err) {
		if err := d.park(string(s.Path), old, s.Was); err != nil {
			return err
		}
		return d.move(fresh, string(s.Path))
	}
	if err != nil {
		return err
	}
	failpoint.Hit("apply.exchanged")
	if aside, err = d.state(1, fresh); err == nil && !s.Was.is(aside) { // replaced since it was looked at
		err = errors.Join(&MovedError{string(s.Path)}, d.exchange(fresh, string(s.Path)))
	}
	return err
}

// remove moves a file out of the way.
func (d *Dir) remove(p *Plan, i int) error {
	s := &p.Steps[i]
	_, old := p.names(i)
	parked, err := d.state(1, old)
	if err != nil || s.Was.is(parked) {
		return err
	}
	now, err := d.state(0, string(s.Path))
	if err != nil {
		return err
	}
	if !s.Was.untouched(now) {
		return &MovedError{string(s.Path)}
	}
	return d.park(string(s.Path), old, s.Was)
}

// park renames what is at path and puts it back if it is not what was expected:
// somebody replaced it at the last moment.
func (d *Dir) park(path, aside string, was *State) error {
	if err := d.move(path, aside); err != nil {
		return err
	}
	failpoint.Hit("apply.parked")
	parked, err := d.state(1, aside)
	if err == nil && !was.is(parked) {
		err = errors.Join(&MovedError{path}, d.move(aside, path))
	}
	return err
}

// mkdir makes a folder beside its place, so that it never appears with other
// bits than its own.
func (d *Dir) mkdir(p *Plan, i int) error {
	s := &p.Steps[i]
	fresh, _ := p.names(i)
	now, err := d.state(0, string(s.Path))
	if err != nil {
		return err
	}
	if now.isDir() {
		return nil // made before, or by somebody else: any folder will do
	}
	if now != nil {
		return &MovedError{string(s.Path)}
	}
	dir, name, err := d.at(1, fresh)
	if err != nil {
		return err
	}
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && err != unix.EEXIST {
		return err
	}
	failpoint.Hit("apply.made")
	if err := d.setFolder(fresh, s.Perm|0o700); err != nil {
		return err
	}
	return d.move(fresh, string(s.Path))
}

// setFolder sets a folder's permission bits. Others, such as the group that it
// got from its parent, stay.
func (d *Dir) setFolder(path string, perm uint32) error {
	dir, name, err := d.at(0, path)
	if err != nil {
		return err
	}
	now, err := d.state(0, path)
	if err != nil || !now.isDir() || now.Mode&0o777 == perm&0o777 {
		return err
	}
	return chmodAt(dir, name, now.Ino, now.Mode&0o7000|perm&0o777)
}

// finishFolders gives folders of the plan that their owner may not write their
// own bits, once everything is in them, or with widen makes them writable
// again.
func (d *Dir) finishFolders(p *Plan, widen uint32) error {
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if s := &p.Steps[i]; s.Op == Mkdir && s.Perm&0o700 != 0o700 {
			if err := d.setFolder(string(s.Path), s.Perm|widen); err != nil && !isGone(err) {
				return stepError(s, err)
			}
		}
	}
	return nil
}

func (d *Dir) rmdir(s *Step) error {
	now, err := d.state(0, string(s.Path))
	if err == nil && s.Was.is(now) { // else it is gone
		err = d.unlinkDir(string(s.Path))
	}
	if s.Optional {
		return nil
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return &MovedError{string(s.Path)}
	}
	return err
}

func (d *Dir) unlinkDir(path string) error {
	dir, name, err := d.at(0, path)
	if err != nil {
		return err
	}
	err = dirfd.Retry(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
	d.leave() // handles may belong to what is gone
	return err
}

func (d *Dir) chmod(s *Step) error {
	dir, name, err := d.at(0, string(s.Path))
	if isGone(err) {
		return &MovedError{string(s.Path)}
	}
	if err != nil {
		return err
	}
	now, err := d.state(0, string(s.Path))
	if err != nil {
		return err
	}
	if s.changed().is(now) {
		return nil
	}
	if !s.Was.untouched(now) {
		return &MovedError{string(s.Path)}
	}
	if err = chmodAt(dir, name, now.Ino, s.Was.Mode&0o7000|s.Perm&0o777); errors.Is(err, unix.ESTALE) {
		return &MovedError{string(s.Path)}
	}
	return err
}

// changed is the state of a file after its Chmod.
func (s *Step) changed() *State {
	to := *s.Was
	to.Mode = to.Mode&^0o777 | s.Perm&0o777
	return &to
}

func (d *Dir) exchange(a, b string) error {
	dirA, nameA, err := d.at(1, a)
	if err != nil {
		return err
	}
	dirB, nameB, err := d.at(0, b)
	if err != nil {
		return err
	}
	if d.plain {
		return unix.ENOSYS
	}
	return exchange(dirA, nameA, dirB, nameB)
}

// move renames from one path to another that must be free; one of the two is a
// name aside.
func (d *Dir) move(from, to string) error {
	dirA, nameA, err := d.at(1, from)
	if err != nil {
		return err
	}
	dirB, nameB, err := d.at(0, to)
	if isGone(err) {
		return &MovedError{to}
	}
	if err != nil {
		return err
	}
	if err = unix.ENOSYS; !d.plain {
		err = renameFree(dirA, nameA, dirB, nameB)
	}
	if unsupported(err) {
		err = renameByLink(dirA, nameA, dirB, nameB)
	}
	if err == unix.EEXIST {
		return &MovedError{to}
	}
	return err
}

// renameByLink is renameFree for file systems that do not know it: a link fails
// if something is there. Without links there is a moment between the check and
// the rename, as in git.
func renameByLink(a int, nameA string, b int, nameB string) error {
	err := unix.Linkat(a, nameA, b, nameB, 0)
	if err == nil {
		return unix.Unlinkat(a, nameA, 0)
	}
	if err != unix.EPERM && !unsupported(err) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(b, nameB, &st, unix.AT_SYMLINK_NOFOLLOW); err != unix.ENOENT {
		if err == nil {
			err = unix.EEXIST
		}
		return err
	}
	return unix.Renameat(a, nameA, b, nameB)
}

func unsupported(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP)
}

// Left says why a path could not be restored.
type Left struct {
	Path string
	Err  error
}

// Error names the path and the reason.
func (l Left) Error() string { return fmt.Sprintf("%s: %v", text.Printable(l.Path), l.Err) }

// Unwrap returns the reason.
func (l Left) Unwrap() error { return l.Err }
