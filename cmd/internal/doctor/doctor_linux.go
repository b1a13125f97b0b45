package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/text"
)

// checkFileSystem probes the folder in which workspaces are made: whether
// programs may run there and whether files can share blocks. The probe files
// have no name (O_TMPFILE), so nothing can stay behind.
func checkFileSystem(home, origin string) []check {
	var checks []check
	var fs unix.Statfs_t
	if err := unix.Statfs(home, &fs); err != nil {
		return []check{{"files", checkFail, fmt.Sprintf("%s: %v", home, err), "superqode --home DIR …"}}
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		checks = append(checks, check{"files", checkWarn, home + " is mounted noexec: programs in a workspace cannot be started", "superqode --home DIR … on another file system"})
	}
	if fs.Flags&unix.ST_RDONLY != 0 {
		checks = append(checks, check{"files", checkFail, home + " is mounted read-only", "superqode --home DIR … on another file system"})
		return checks
	}
	checks = append(checks, check{"space", checkOK, fmt.Sprintf("%s free below %s", text.Size(int64(fs.Bavail)*int64(fs.Bsize)), home), ""})
	return append(checks, checkReflink(home, origin))
}

func checkReflink(home, origin string) check {
	c := check{Name: "reflink", Status: checkNote}
	if err := cloneProbe(home); err != nil {
		c.Detail = fmt.Sprintf("files below %s are copied byte by byte (%v)", home, err)
		return c
	}
	same, err := sameFileSystem(home, origin)
	if err != nil || !same {
		c.Detail = "origin and home lie on different file systems: files are copied byte by byte"
		c.Remedy = "superqode --home DIR … with a folder on the origin's file system"
		return c
	}
	c.Status, c.Detail = checkOK, "files are cloned (FICLONE)"
	return c
}

// cloneProbe clones one unnamed file into another.
func cloneProbe(dir string) error {
	src, err := tmpfile(dir)
	if err != nil {
		return err
	}
	defer unix.Close(src)
	if _, err := unix.Write(src, make([]byte, 4096)); err != nil {
		return err
	}
	dst, err := tmpfile(dir)
	if err != nil {
		return err
	}
	defer unix.Close(dst)
	return unix.IoctlFileClone(dst, src)
}

func tmpfile(dir string) (int, error) {
	return unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
}

func sameFileSystem(a, b string) (bool, error) {
	var sa, sb unix.Stat_t
	if err := unix.Stat(a, &sa); err != nil {
		return false, err
	}
	if err := unix.Stat(b, &sb); err != nil {
		return false, err
	}
	return sa.Dev == sb.Dev, nil
}

// checkProcesses probes what counts processes.
func checkProcesses() check { return checkCgroup() }

// checkCgroup asks for a unified hierarchy in which we may make a group.
func checkCgroup() check {
	const root = "/sys/fs/cgroup"
	c := check{Name: "cgroup", Status: checkNote}
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		c.Detail = "no cgroup v2: processes are found through /proc, limits are per process"
		return c
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	path, ok := strings.CutPrefix(strings.TrimSpace(string(own)), "0::")
	if err != nil || !ok {
		c.Detail = "own cgroup is not known: processes are found through /proc"
		return c
	}
	if err := unix.Access(filepath.Join(root, path), unix.W_OK); err != nil {
		c.Detail = "cgroup v2, but " + path + " is not delegated to this user: processes are found through /proc"
		c.Remedy = "systemd-run --user --scope superqode …"
		return c
	}
	c.Status, c.Detail = checkOK, "v2, delegated"
	return c
}
