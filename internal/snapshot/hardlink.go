package snapshot

import "golang.org/x/sys/unix"

// inode names a file whatever its paths.
type inode struct{ dev, ino uint64 }

func (e *Entry) inode() inode { return inode{e.Stat.Dev, e.Stat.Ino} }

// twin is a file that Materialize may give further names.
type twin struct {
	path string
	inode
}

// hasTwins reports whether e was one name of several and is to become that again.
func (m *materializer) hasTwins(e *Entry) bool {
	return m.opt.Now != nil && e.Kind == File && e.Stat.Nlink > 1
}

// linkTwin makes e a further name of the file that it was a name of, where that
// has its other name, or has been made. It reports whether it did; a file of its
// own does as well.
func (m *materializer) linkTwin(at int, name string, e *Entry) bool {
	t, ok := m.twins[e.inode()]
	if !ok && m.opt.Twin != nil {
		if now := m.opt.Twin(e); now != nil {
			t, ok = twin{now.Path, now.inode()}, true
		}
	}
	if !ok {
		return false
	}
	dir, from := splitPath(t.path)
	up, err := openByStep(m.root, dir)
	if err != nil {
		return false
	}
	err = unix.Linkat(up, from, at, name, 0)
	_ = unix.Close(up) // a folder handle has nothing to flush
	if err != nil {
		return false
	}
	var st unix.Stat_t
	var now Entry
	if err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		now.fill(&st)
	}
	if err == nil && now.Kind == File && now.inode() == t.inode && now.Size == e.Size {
		return true
	}
	_ = unix.Unlinkat(at, name, 0) // somebody put another file there meanwhile
	return false
}

// rememberTwin notes what was made of e, for its other names.
func (m *materializer) rememberTwin(at int, name string, e *Entry) {
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	var now Entry
	now.fill(&st)
	if m.twins == nil {
		m.twins = map[inode]twin{}
	}
	m.twins[e.inode()] = twin{e.Path, now.inode()}
}
