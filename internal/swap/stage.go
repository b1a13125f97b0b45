package swap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/text"
)

// syncEach is the number of files and folders up to which each is flushed by
// itself. Beyond it one flush of the whole file system is cheaper.
const syncEach = 64

// Stage writes every file and link that the plan puts beside its place, with
// contents from fill, and returns when they would survive a power cut. It also
// checks that the folders are writable, so that little is left that could stop
// Commit. After an error nothing of it stays and the directory is as it was.
func (d *Dir) Stage(ctx context.Context, p *Plan, fill func(ctx context.Context, s *Step, w io.Writer) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	puts := 0
	for i := range p.Steps {
		if p.Steps[i].Op == Put {
			puts++
		}
	}
	err := (&stager{Dir: d, plan: p, fill: fill, each: puts <= syncEach}).all(ctx)
	if err == nil {
		err = d.sync(p)
	}
	if err != nil {
		return errors.Join(err, d.Discard(p))
	}
	return nil
}

// stager is one Stage.
type stager struct {
	*Dir
	plan *Plan
	fill func(ctx context.Context, s *Step, w io.Writer) error
	each bool // flush each file by itself
}

func (d *stager) all(ctx context.Context) error {
	p := d.plan
	for i := range p.Steps {
		s := &p.Steps[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := d.allowed(s); err != nil {
			return &os.PathError{Op: string(s.Op), Path: string(s.Path), Err: err}
		}
		if s.Op != Put {
			continue
		}
		err := failpoint.Err("apply.stage")
		if err == nil {
			err = d.stage(ctx, i)
		}
		if err != nil {
			return fmt.Errorf("write what will be %s: %w", text.Printable(string(s.Path)), err)
		}
	}
	return nil
}

// allowed asks the system whether a step would be refused. The plan itself
// makes folders that do not exist yet.
func (d *Dir) allowed(s *Step) error {
	if s.Op == Rmdir && s.Optional {
		return nil
	}
	if s.Op == Chmod {
		if euid := os.Geteuid(); euid != 0 && uint32(euid) != s.Was.UID {
			return unix.EPERM
		}
		return nil
	}
	fd, _, err := d.at(0, string(s.Path))
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// stage writes one file or link by its temporary name.
func (d *stager) stage(ctx context.Context, i int) error {
	s := &d.plan.Steps[i]
	fresh, _ := d.plan.names(i)
	dir, name, err := d.at(1, fresh)
	if err != nil {
		return err
	}
	if s.Link != "" {
		err = unix.Symlinkat(string(s.Link), dir, name)
	} else {
		err = d.file(ctx, dir, name, s)
	}
	if err != nil {
		return err
	}
	if s.Link != "" && s.Was != nil && os.Geteuid() == 0 {
		// a link's owner does not matter
		_ = unix.Fchownat(dir, name, int(s.Was.UID), int(s.Was.GID), unix.AT_SYMLINK_NOFOLLOW)
	}
	if s.New, err = d.state(1, fresh); err == nil && s.New == nil {
		err = unix.ENOENT
	}
	return err
}

func (d *stager) file(ctx context.Context, dir int, name string, s *Step) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	holes := &holeWriter{f: f}
	w := bufio.NewWriterSize(holes, 64<<10)
	err = d.fill(ctx, s, w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Truncate(holes.off)
	}
	if err == nil && os.Geteuid() == 0 && s.Was != nil {
		err = f.Chown(int(s.Was.UID), int(s.Was.GID)) // before the bits: it drops some
	}
	if err == nil {
		err = unix.Fchmod(fd, s.Perm&0o777)
	}
	if err == nil && d.each {
		err = atomicfile.Sync(f)
	}
	return errors.Join(err, f.Close())
}

// holeWriter writes a file and leaves holes for long runs of zeros, so that a
// big sparse file stays sparse.
type holeWriter struct {
	f     *os.File
	off   int64
	zeros [holeBlock]byte
}

const holeBlock = 32 << 10

// Write passes b on, except whole blocks of zeros.
func (h *holeWriter) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		n := min(len(b), holeBlock)
		if n < holeBlock || !bytes.Equal(b[:n], h.zeros[:n]) {
			if n, err = h.f.WriteAt(b[:n], h.off); err != nil {
				return written + n, err
			}
		}
		h.off, written, b = h.off+int64(n), written+n, b[n:]
	}
	return written, nil
}

// Discard deletes what Stage wrote, wholly or in part.
func (d *Dir) Discard(p *Plan) error {
	if err := p.Check(); err != nil {
		return err
	}
	var errs error
	for i := range p.Steps {
		if p.Steps[i].Op == Put {
			fresh, _ := p.names(i)
			errs = errors.Join(errs, d.unlink(fresh))
		}
	}
	return errs
}

func (d *Dir) unlink(path string) error {
	dir, name, err := d.at(1, path)
	if err == nil {
		err = dirfd.Retry(func() error { return unix.Unlinkat(dir, name, 0) })
	}
	if err == nil || isGone(err) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

// sync makes renames, new files and removals survive a power cut.
func (d *Dir) sync(p *Plan) error {
	folders := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		dir, _ := dirfd.Split(string(s.Path))
		folders[dir] = true
		if s.Op == Put || s.Op == Remove || s.Op == Mkdir {
			folders[string(s.Side)] = true
		}
	}
	if len(folders) > syncEach {
		return syncAll(d.root)
	}
	for dir := range folders {
		fd, _, err := d.at(0, dir+"/.")
		if dir == "" {
			fd, err = d.root, nil
		}
		if isGone(err) {
			continue // the plan made, or removed, it
		}
		if err == nil {
			err = unix.Fsync(fd)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) { // a file system that cannot flush folders
			return fmt.Errorf("flush folder %s: %w", text.Printable(dir), err)
		}
	}
	return nil
}
