//go:build !linux

package snapshot

import (
	"time"

	"golang.org/x/sys/unix"
)

// read lists the open directory fd.
func (d *dirNames) read(fd int) error {
	d.buf, d.refs = d.buf[:0], d.refs[:0]
	raw := make([]byte, 32<<10)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, raw)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		_, _, names = unix.ParseDirent(raw[:n], -1, names[:0])
		for _, s := range names {
			off := len(d.buf)
			d.buf = append(append(d.buf, s...), 0)
			d.add(off, len(s))
		}
	}
}

// StatOf keeps what identifies a file's state.
func StatOf(st *unix.Stat_t) Stat {
	return Stat{
		Dev: uint64(st.Dev), Ino: st.Ino, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		UID: st.Uid, GID: st.Gid, Nlink: uint32(st.Nlink),
	}
}

// clockTick is one step of the clock that stamps files, at its longest.
func clockTick() time.Duration { return maxTick }
