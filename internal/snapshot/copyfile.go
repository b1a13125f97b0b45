package snapshot

import (
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyTries is how often a file that changes while it is copied is copied anew.
const copyTries = 3

// link copies a symbolic link.
func (w *copyWorker) link(d *copyDir, name string, e, out *Entry) error {
	var st unix.Stat_t
	n, err := unix.Readlinkat(d.src, name, w.buf)
	if err == nil {
		err = unix.Fstatat(d.src, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return sourceError{fmt.Errorf("read link: %w", err)}
	}
	*out = Entry{Path: e.Path, Kind: Link, Size: int64(n), Link: e.Link, ID: e.ID}
	if string(w.buf[:n]) != e.Link || e.ID.IsZero() {
		out.Link, out.ID = string(w.buf[:n]), w.hashBytes(w.buf[:n])
	}
	if err = unix.Symlinkat(out.Link, d.dst, name); err != nil {
		return w.dropped(out, targetError("make link", err))
	}
	if err = unix.UtimesNanoAt(d.dst, name, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		err = unix.Fstatat(d.dst, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return w.dropped(out, targetError("set time", err))
	}
	out.Perm, out.Stat = e.Perm, unixStat(&st)
	return nil
}

// dropped takes an entry out of the result again.
func (w *copyWorker) dropped(out *Entry, err error) error {
	*out = Entry{}
	return err
}

// file copies a regular file. The source is read first and stat'ed after: equal
// stat data then proves that the contents read are those of the scan.
func (w *copyWorker) file(d *copyDir, name string, e, out *Entry) error {
	in, err := openat(d.src, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return sourceError{fmt.Errorf("open: %w", err)}
	}
	defer unix.Close(in) //nolint:errcheck // opened for reading only
	var st unix.Stat_t
	small := e.Size < copyBuffer && w.noClone.Load()
	n := 0
	if small {
		if n, err = readUpTo(in, w.buf[:e.Size+1], int(e.Size), 0); err != nil {
			return sourceError{fmt.Errorf("read: %w", err)}
		}
	}
	if err = unix.Fstat(in, &st); err != nil {
		return sourceError{fmt.Errorf("stat: %w", err)}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return sourceError{fmt.Errorf("not a regular file any more")}
	}
	small = small && int64(n) == st.Size && !isSparse(&st)
	fd, err := openat(d.dst, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, uint32(st.Mode)&0o777)
	if err != nil {
		return targetError("create", err)
	}
	id := w.trustedID(e, &st)
	if small {
		if err = writeFull(fd, w.buf[:n], 0); err == nil && id.IsZero() {
			id = w.hashBytes(w.buf[:n])
		}
	} else {
		id, err = w.contents(in, fd, e, &st)
	}
	changed := false
	if err == errKeptChanging {
		changed, err = true, nil
	}
	if err == nil {
		err = finishFile(fd, e.Path, id, &st, out)
	}
	if cerr := unix.Close(fd); err == nil && cerr != nil {
		err = cerr // network file systems tell here that the disk is full
	}
	if err != nil {
		_ = unix.Unlinkat(d.dst, name, 0) // half a file is worth nothing; the first error is the one to tell
		return w.dropped(out, targetError("write", err))
	}
	if changed {
		return sourceError{ErrChangedWhileRead}
	}
	return nil
}

// trustedID returns the content id that the scan knew if the file is still in
// the state that was scanned.
func (w *copyWorker) trustedID(e *Entry, st *unix.Stat_t) ID {
	s := unixStat(st)
	if e.Size != st.Size || e.Stat.Dev != s.Dev || e.Stat.Ino != s.Ino || e.Stat.Mtime != s.Mtime || e.Stat.Ctime != s.Ctime ||
		s.Mtime >= w.cutoff || s.Ctime >= w.cutoff {
		return ID{}
	}
	return e.ID
}

// finishFile gives the file its time and mode and records what it has become.
func finishFile(fd int, path string, id ID, src *unix.Stat_t, out *Entry) error {
	var st unix.Stat_t
	if err := futimens(fd, src.Mtim); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	// The umask, or a set-id bit that the write cleared, shows here; usually not.
	if (st.Mode^src.Mode)&0o7777 != 0 {
		if err := unix.Fchmod(fd, uint32(src.Mode)&0o7777); err != nil {
			return err
		}
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
	}
	*out = Entry{Path: path, Kind: File, Perm: uint32(st.Mode) & 0o7777, Size: st.Size, ID: id, Stat: unixStat(&st)}
	return nil
}

func (w *copyWorker) hashBytes(b []byte) ID {
	w.startHash(int64(len(b)))
	w.hash.Write(b)
	var sum [32]byte
	return IDFrom(w.hash.Sum(sum[:0]))
}

func (w *copyWorker) startHash(size int64) {
	if w.hash == nil {
		w.hash = w.format.NewBlobHash(size)
		return
	}
	w.hash.Reset()
	var head [32]byte
	w.hash.Write(append(strconv.AppendInt(append(head[:0], "blob "...), size, 10), 0))
}

// readUpTo reads at least want bytes of what fits buf, or less where the file
// ends. A buf longer than want lets a file that has grown show it.
func readUpTo(fd int, buf []byte, want int, off int64) (n int, err error) {
	for n < want {
		m, err := unix.Pread(fd, buf[n:], off+int64(n))
		if err == syscall.EINTR {
			continue
		}
		if m <= 0 || err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

func writeFull(fd int, buf []byte, off int64) error {
	for len(buf) > 0 {
		m, err := unix.Pwrite(fd, buf, off)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		buf, off = buf[m:], off+int64(m)
	}
	return nil
}
