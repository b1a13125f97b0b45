package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// mayMount reports whether this process may change its mounts.
func mayMount() bool {
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// mountAll gives the calling thread mounts of its own, in which each of list covers
// its place; own says that the thread has mounts of its own already. Nothing that
// comes after can remove them: see Confiner.
func mountAll(list []Mount, own bool, overlay func() (*os.File, error)) error {
	if !own {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("mounts of its own were refused (%w)", err)
		}
	}
	// Slave: what the user mounts still appears here, what is mounted here
	// stays here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("its mounts could not be separated (%w)", err)
	}
	found := map[string]int{}
	for _, m := range list {
		if m.As == another { // before something covers it
			fd, err := unix.OpenTree(unix.AT_FDCWD, m.From, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
			if err != nil {
				return fmt.Errorf("%s could not be mounted once more (%w)", m.From, err)
			}
			defer unix.Close(fd)
			found[m.Path] = fd
		}
	}
	for _, m := range list {
		var err error
		switch m.As {
		case placed: // at last
		case overlaid:
			err = attachOverlay(m.Path, overlay)
		case another:
			if err = unix.MountSetattr(found[m.Path], "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err == nil {
				err = unix.MoveMount(found[m.Path], "", unix.AT_FDCWD, m.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
			}
		default:
			err = m.attach()
		}
		if err != nil && !(m.As != writable && m.As != overlaid && m.As != another && errors.Is(err, unix.ENOENT)) {
			return fmt.Errorf("%s could not be covered by a mount (%w)", m.Path, err)
		}
	}
	return placeAll(list)
}

// placeAll makes the mounts that show what lies elsewhere. All of that is taken first, with
// the mounts made before, since the first of them may cover it.
func placeAll(list []Mount) error {
	list = slices.DeleteFunc(slices.Clone(list), func(m Mount) bool { return m.As != placed })
	trees := make([]*os.File, len(list))
	defer func() {
		for _, t := range trees {
			_ = t.Close()
		}
	}()
	for i, m := range list {
		fd, err := take(m.From)
		if err != nil {
			return fmt.Errorf("%s could not be taken for %s (%w)", m.From, m.Path, err)
		}
		trees[i] = os.NewFile(uintptr(fd), m.From)
	}
	for i, m := range list {
		if err := m.place(trees[i], list[:i]); err != nil {
			return fmt.Errorf("%s could not be mounted at %s (%w)", m.From, m.Path, err)
		}
	}
	return nil
}

// attachOverlay puts the overlay in the origin's place, and looks whether it is there.
func attachOverlay(origin string, overlay func() (*os.File, error)) error {
	mount, err := overlay()
	if err != nil {
		return err
	}
	defer mount.Close()
	var want, got unix.Stat_t
	err = unix.Fstat(int(mount.Fd()), &want)
	if err == nil {
		err = unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, origin, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err == nil {
		err = unix.Lstat(origin, &got)
	}
	if err == nil && (got.Dev != want.Dev || got.Ino != want.Ino) {
		err = errors.New("something else is there")
	}
	return err
}

// take clones the mounts at a path that leads through no link.
func take(path string) (fd int, err error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// place attaches a tree, and checks that it is what stands there then. In a folder that was
// placed before, which a program has had, there may be no place for it, or a trap.
func (m Mount) place(tree *os.File, before []Mount) error {
	var want, got unix.Stat_t
	if err := unix.Fstat(int(tree.Fd()), &want); err != nil {
		return err
	}
	for _, c := range slices.Backward(before) {
		if m.Path != c.Path && superqode.Within(m.Path, c.Path) {
			if err := makePlace(c.Path, strings.TrimPrefix(m.Path, c.Path+"/"), want.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
				return err
			}
			break
		}
	}
	at, err := unix.Openat2(unix.AT_FDCWD, m.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err = unix.MoveMount(int(tree.Fd()), "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err == nil {
		err = unix.Lstat(m.Path, &got)
	}
	if err == nil && (got.Dev != want.Dev || got.Ino != want.Ino) {
		err = errors.New("something else is there")
	}
	return err
}

// makePlace makes a folder or a file to mount on, where it is missing.
func makePlace(dir, rel string, isDir bool) error {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(rel); err == nil {
		return nil
	}
	if isDir {
		return root.MkdirAll(rel, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) { // made since by another program's start in this session
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// attach mounts a place on itself; the mount is what it is to be before it becomes
// visible.
func (m Mount) attach() error {
	switch m.As {
	case copied:
		return coverByCopy(m.Path)
	case hidden:
		return cover(m.Path, nil)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	flags, attr := uint(unix.AT_EMPTY_PATH), unix.MountAttr{}
	switch m.As {
	case readOnly:
		flags, attr.Attr_set = flags|unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY
	case noDevices:
		attr.Attr_set = unix.MOUNT_ATTR_NODEV
	case writable:
		attr.Attr_clr = unix.MOUNT_ATTR_RDONLY
	}
	if m.As != pinned {
		if err := unix.MountSetattr(fd, "", flags, &attr); err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, m.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// coverByCopy covers a folder by a read-only one with copies of its files.
func coverByCopy(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, e := range entries {
		if text, err := atomicfile.ReadThrough(filepath.Join(dir, e.Name())); err == nil { // else the program cannot read it either
			texts[e.Name()] = text
		}
	}
	return cover(dir, texts)
}

// cover covers a folder by a read-only one with files of its own.
func cover(dir string, texts map[string][]byte) error {
	if err := unix.Mount("superqode", dir, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // as it was
			return err
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// checkMounts reads back what the mounts are to the calling thread.
func checkMounts(list []Mount) error {
	for _, m := range list {
		if m.As == placed {
			continue // was checked when it was made
		}
		var st unix.Statfs_t
		err := unix.Statfs(m.Path, &st)
		closed := st.Flags&unix.ST_RDONLY != 0
		switch {
		case errors.Is(err, unix.ENOENT) && m.As != writable:
		case err != nil:
			return fmt.Errorf("look at the mount of %s: %w", m.Path, err)
		case m.As == overlaid && (st.Type != unix.OVERLAYFS_SUPER_MAGIC || closed):
			return fmt.Errorf("%s is not the session's own", m.Path)
		case m.As == hidden && st.Type != unix.TMPFS_MAGIC:
			return fmt.Errorf("%s is not hidden", m.Path)
		case (m.As == readOnly || m.As == another || m.As == hidden) && !closed:
			return fmt.Errorf("%s is writable all the same", m.Path)
		case m.As == writable && closed:
			return fmt.Errorf("%s is not writable", m.Path)
		case m.As == noDevices && st.Flags&unix.ST_NODEV == 0:
			return fmt.Errorf("%s is a device all the same", m.Path)
		}
	}
	return nil
}

// reopened opens a file that was opened for reading outside of these mounts once more,
// in them: through a descriptor of the other one a program would write to what is
// read-only here. It is nil for whatever is not such a file.
func reopened(f *os.File) (*os.File, error) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	var st, now unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFDIR ||
		flags&unix.O_ACCMODE != unix.O_RDONLY || st.Nlink == 0 {
		return nil, nil
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil, err
	}
	again, err := os.OpenFile(path, flags&^unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, os.ErrPermission) {
		return nil, nil // it was renamed or removed since, or the program could not open it for writing either
	}
	if err != nil {
		return nil, fmt.Errorf("open the program's input again: %w", err)
	}
	err = unix.Fstat(int(again.Fd()), &now)
	at := int64(0)
	if err == nil && (now.Dev != st.Dev || now.Ino != st.Ino) {
		return nil, again.Close()
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		if at, err = unix.Seek(int(f.Fd()), 0, unix.SEEK_CUR); err == nil {
			_, err = unix.Seek(int(again.Fd()), at, unix.SEEK_SET)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the program's input again: %w", err), again.Close())
	}
	return again, nil
}

// keepOpened keeps folders and files that this process was started with from the programs
// that it starts: by a folder they would reach what the mounts cover, and a file that was
// opened for reading they would open again, for writing. What the user opened for writing
// is theirs.
func keepOpened() {
	names, _ := os.ReadDir("/proc/self/fd")
	for _, n := range names {
		fd := 0
		if _, err := fmt.Sscan(n.Name(), &fd); err != nil || fd < 3 {
			continue
		}
		var st unix.Stat_t
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || unix.Fstat(fd, &st) != nil {
			continue
		}
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR || kind == unix.S_IFREG && flags&unix.O_ACCMODE == unix.O_RDONLY {
			unix.CloseOnExec(fd)
		}
	}
}
