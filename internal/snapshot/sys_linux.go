package snapshot

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// direntName is where the name begins in a struct linux_dirent64, behind inode
// (8 bytes), offset (8), record length (2) and type (1).
const direntName = 19

// read lists the open directory fd. The records stay where the kernel put them,
// and the names are used in place: os.ReadDir makes three allocations a name.
func (d *dirNames) read(fd int) error {
	d.buf, d.refs = d.buf[:0], d.refs[:0]
	for {
		if cap(d.buf)-len(d.buf) < 32<<10 {
			d.buf = append(make([]byte, 0, 2*cap(d.buf)+64<<10), d.buf...)
		}
		from := len(d.buf)
		n, err := unix.Getdents(fd, d.buf[from:cap(d.buf)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		d.buf = d.buf[:from+n]
		for at := from; at < len(d.buf); {
			size := int(binary.NativeEndian.Uint16(d.buf[at+16:]))
			name := d.buf[at+direntName : at+size]
			name = name[:bytes.IndexByte(name, 0)]
			if s := string(name); s != "." && s != ".." {
				d.add(at+direntName, len(name))
			}
			at += size
		}
	}
}

// StatOf keeps what identifies a file's state.
func StatOf(st *unix.Stat_t) Stat {
	return Stat{
		Dev: st.Dev, Ino: st.Ino, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		UID: st.Uid, GID: st.Gid, Nlink: uint32(st.Nlink), //nolint:unconvert // its width differs between architectures
	}
}

// clockTick is one step of the clock that stamps files, which the kernel tells as
// the resolution of CLOCK_REALTIME_COARSE: 1 to 10 ms. It never changes while
// the kernel runs.
var clockTick = sync.OnceValue(func() time.Duration {
	var res unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_REALTIME_COARSE, &res); err != nil || res.Nano() <= 0 || res.Nano() > int64(maxTick) {
		return maxTick
	}
	return time.Duration(res.Nano())
})
