package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// bindReadOnly gives the calling thread mounts of its own, in which a read-only
// mount of itself covers each folder. A confined program cannot remove it:
// Landlock forbids changing mounts. own says that the thread has mounts of its
// own already.
func bindReadOnly(dirs []string, own bool) error {
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
	for _, dir := range dirs {
		if err := coverReadOnly(dir); err != nil {
			return fmt.Errorf("%s could not be mounted read-only (%w)", dir, err)
		}
	}
	return nil
}

// coverReadOnly mounts dir on itself; the mount is read-only before it becomes
// visible.
func coverReadOnly(dir string) error {
	const whole = unix.AT_RECURSIVE | unix.AT_EMPTY_PATH
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MountSetattr(fd, "", whole, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
