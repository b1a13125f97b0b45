package state

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// folderInfo is what a folder itself is. Snapshots are about what is in a folder
// only.
type folderInfo struct {
	Mode uint32    `json:"mode"` // permission, set-id and sticky bits
	UID  uint32    `json:"uid"`
	GID  uint32    `json:"gid"`
	Time time.Time `json:"time"`
}

// FolderInfoOf looks at a folder; the error is a *os.PathError.
func FolderInfoOf(dir string) (folderInfo, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return folderInfo{}, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	sec, nsec := st.Mtim.Unix()
	return folderInfo{uint32(st.Mode) & 0o7777, st.Uid, st.Gid, time.Unix(sec, nsec).UTC()}, nil
}

// Restore makes dir what it was; nothing may be done in it afterwards. Only root
// gives owners back. A link in its place is not followed.
func (f folderInfo) Restore(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	if os.Geteuid() == 0 {
		if err := d.Chown(int(f.UID), int(f.GID)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(d.Fd()), f.Mode); err != nil {
		return &os.PathError{Op: "chmod", Path: dir, Err: err}
	}
	ts := unix.NsecToTimespec(f.Time.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "set time", Path: dir, Err: err}
	}
	return nil
}
