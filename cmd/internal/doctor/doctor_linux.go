package doctor

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// fileSystem probes the folder in which workspaces are made: whether programs may run there and
// whether files can share blocks.
func fileSystem(home, origin string) []check {
	const elsewhere = "superqode --home DIR … on another file system"
	var checks []check
	var fs unix.Statfs_t
	if err := unix.Statfs(home, &fs); err != nil {
		return []check{{"files", fail, fmt.Sprintf("%s: %v", home, err), "superqode --home DIR …"}}
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		noexec := home + " is mounted noexec: programs in a workspace cannot be started"
		checks = append(checks, check{"files", warn, noexec, elsewhere})
	}
	if fs.Flags&unix.ST_RDONLY != 0 {
		return append(checks, check{"files", fail, home + " is mounted read-only", elsewhere})
	}
	free := fmt.Sprintf("%s free below %s", text.Size(int64(fs.Bavail)*int64(fs.Bsize)), home)
	return append(checks, check{"space", ok, free, ""}, reflink(home, origin))
}

func reflink(home, origin string) check {
	c := check{Name: "reflink", Status: note}
	same, err := sameFileSystem(home, origin)
	switch {
	case err != nil || !same:
		c.Detail = "origin and home are on different file systems: files are copied byte by byte"
		c.Remedy = "superqode --home DIR … with a folder on the origin's file system"
	case !treecopy.CanClone(home, home):
		c.Detail = "the file system of " + home + " cannot clone files: they are copied byte by byte"
	default:
		c.Status, c.Detail = ok, "files are cloned (FICLONE)"
	}
	return c
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

// processes asks for a cgroup in which we may make a group.
func processes(context.Context, *app.App) []check {
	c := check{Name: "cgroup", Status: note}
	own := runner.OwnCgroup()
	switch {
	case own == "":
		c.Detail = "no cgroup v2: processes are found through /proc, limits are per process"
	case unix.Access(own, unix.W_OK) != nil:
		c.Detail = "cgroup v2, but " + own + " is not delegated to this user: processes are found through /proc"
		c.Remedy = "systemd-run --user --scope superqode …"
	default:
		c.Status, c.Detail = ok, "v2, delegated"
	}
	return []check{c}
}
