package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// dirNames are the names in one directory, without "." and "..": ranges of buf,
// each followed by a NUL byte, so that they can be handed to the kernel as they
// are.
type dirNames struct {
	buf  []byte
	refs []nameRef
}

type nameRef struct {
	key      uint64 // the first eight bytes, so that few comparisons touch buf
	off, len uint32
}

func (d *dirNames) name(r nameRef) []byte { return d.buf[r.off : r.off+r.len] }

// add records the name of n bytes at off.
func (d *dirNames) add(off, n int) {
	var first [8]byte
	copy(first[:], d.buf[off:off+n])
	d.refs = append(d.refs, nameRef{binary.BigEndian.Uint64(first[:]), uint32(off), uint32(n)})
}

func (d *dirNames) sort() {
	slices.SortFunc(d.refs, func(a, b nameRef) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return bytes.Compare(d.name(a), d.name(b))
	})
}

// prevChild is a direct child of a directory in the previous snapshot, with the
// range of what lies below it.
type prevChild struct{ at, lo, hi int32 }

// join makes w.items of the names that were read, each with its place in the
// previous snapshot, and returns how many have none.
func (w *walkWorker) join(n *walkNode) (fresh int) {
	w.listPrevious(n)
	cut := len(n.path)
	if cut > 0 {
		cut++
	}
	w.items = w.items[:0]
	rest := w.children
	for _, r := range w.dir.refs {
		it := walkItem{off: r.off, len: r.len, at: -1}
		name := w.dir.name(r)
		for len(rest) > 0 {
			c := cmp.Compare(w.prev[rest[0].at].Path[cut:], string(name)) // no copy: the compiler compares in place
			if c > 0 {
				break
			}
			if c == 0 {
				it.at, it.subLo, it.subHi = rest[0].at, rest[0].lo, rest[0].hi
			}
			rest = rest[1:]
		}
		if it.at < 0 {
			it.slot = int32(fresh)
			fresh++
		}
		w.items = append(w.items, it)
	}
	return fresh
}

// listPrevious fills w.children with what the previous snapshot holds directly
// in n, in the order of the names. What lies below a child "a" need not follow
// it at once: "a-b" sorts between "a" and "a/c".
func (w *walkWorker) listPrevious(n *walkNode) {
	w.children = w.children[:0]
	cut := len(n.path)
	if cut > 0 {
		cut++
	}
	for i := n.lo; i < n.hi; {
		p := w.prev[i].Path
		slash := strings.IndexByte(p[cut:], '/')
		if slash < 0 {
			w.children = append(w.children, prevChild{at: i})
			i++
			continue
		}
		end := endOfPrefix(w.prev, i, n.hi, p[:cut+slash+1])
		for k := len(w.children) - 1; k >= 0; k-- {
			if w.prev[w.children[k].at].Path == p[:cut+slash] {
				w.children[k].lo, w.children[k].hi = i, end
				break
			}
		}
		i = end
	}
}

// endOfPrefix returns the first position in (i, hi] whose path lacks the prefix
// that path i has. It looks ahead in growing steps, for most directories are
// small.
func endOfPrefix(list []Entry, i, hi int32, prefix string) int32 {
	step := int32(1)
	for i+step < hi && strings.HasPrefix(list[i+step].Path, prefix) {
		i += step
		step *= 2
	}
	lo, end := i+1, min(i+step, hi)
	for lo < end {
		mid := lo + (end-lo)/2
		if strings.HasPrefix(list[mid].Path, prefix) {
			lo = mid + 1
		} else {
			end = mid
		}
	}
	return lo
}

// openByStep opens the directory path below an open one, name by name, so that
// no link on the way is followed and no path is longer than the kernel takes.
func openByStep(root int, path string) (int, error) {
	fd, err := openDirAt(root, ".")
	for path != "" && err == nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next := -1
		next, err = openDirAt(fd, name)
		_ = unix.Close(fd) // opened for reading only
		fd = next
	}
	return fd, err
}

// openDirAt opens a directory in an open one.
func openDirAt(dir int, name string) (fd int, err error) {
	err = ignoringEINTR(func() error {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// readLinkAt reads a link's target. size is its length as lstat told it, which
// is 0 on some file systems.
func readLinkAt(dir int, name string, size int64) (string, error) {
	for n := max(int(size)+1, 128); ; n *= 2 {
		buf := make([]byte, n)
		got, err := unix.Readlinkat(dir, name, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", err
		}
		if got < n {
			return string(buf[:got]), nil
		}
	}
}
