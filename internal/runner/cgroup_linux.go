package runner

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is a control group (version 2) of one run. A nil one has no members and
// does nothing.
type cgroup struct {
	path string
	dir  *os.File
}

// newCgroup makes a group below our own, or returns nil: the hierarchy is often
// not writable, and then the process table has to suffice.
func newCgroup() *cgroup {
	parent := OwnCgroup()
	if parent == "" {
		return nil
	}
	return makeCgroup(parent)
}

func makeCgroup(parent string) *cgroup {
	path := filepath.Join(parent, groupName())
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil
	}
	sweepCgroups(parent)
	return &cgroup{path, dir}
}

// sweepCgroups removes empty groups of superqodes that were killed. The kernel
// refuses it while a group has members.
func sweepCgroups(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, "superqode-*-*"))
	for _, d := range dirs {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(d), "-")[1])
		if err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			removeGroups(d)
		}
	}
}

// OwnCgroup returns the folder of this process's version 2 group, or "". On
// hybrid machines the hierarchy is at /sys/fs/cgroup/unified.
func OwnCgroup() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	group := ""
	for line := range bytes.Lines(own) {
		if g, ok := strings.CutPrefix(string(line), "0::"); ok {
			group = strings.TrimSuffix(g, "\n")
		}
	}
	f, err := os.Open("/proc/self/mountinfo")
	if group == "" || err != nil {
		return ""
	}
	defer f.Close()
	return findCgroup(bufio.NewScanner(f), group)
}

func findCgroup(mounts *bufio.Scanner, group string) string {
	return findGroup(mounts, group, func(kind, _ string) bool { return kind == "cgroup2" })
}

// findGroup looks up in mountinfo where group is mounted (proc_pid_mountinfo(5):
// field 4 is the root within the file system, field 5 the mount point; after the
// dash come the file system's kind, its source and its options).
func findGroup(mounts *bufio.Scanner, group string, match func(kind, options string) bool) string {
	for mounts.Scan() {
		head, tail, ok := strings.Cut(mounts.Text(), " - ")
		kind := strings.Fields(tail)
		if !ok || len(kind) < 3 || !match(kind[0], kind[2]) {
			continue
		}
		f := strings.Fields(head)
		if len(f) < 5 || strings.Contains(f[4], `\`) {
			continue
		}
		rel := group
		if f[3] != "/" {
			if rel, ok = strings.CutPrefix(group, f[3]); !ok || rel != "" && rel[0] != '/' {
				continue
			}
		}
		if strings.HasPrefix(rel, "/..") {
			continue // our group is outside what is mounted here
		}
		return filepath.Join(f[4], rel)
	}
	return ""
}

// kill ends all members at once, including those that are being forked (Linux
// 5.14; before, the file does not exist).
func (c *cgroup) kill() {
	if c == nil {
		return
	}
	if f, err := os.OpenFile(filepath.Join(c.path, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1")
		_ = f.Close()
	}
}

// pids returns the members, including those of groups that the program made.
func (c *cgroup) pids() []int {
	if c == nil {
		return nil
	}
	var pids []int
	_ = filepath.WalkDir(c.path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		b, _ := os.ReadFile(filepath.Join(p, "cgroup.procs"))
		for f := range bytes.FieldsSeq(b) {
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// remove removes the group. The kernel may need a moment after the last
// member's end; a later run sweeps a group that stays.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	_ = c.dir.Close()
	for i := range 5 {
		if removeGroups(c.path) {
			return
		}
		time.Sleep(time.Millisecond << i)
	}
}

// removeGroups removes a group and the groups in it, innermost first.
func removeGroups(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			removeGroups(filepath.Join(path, e.Name()))
		}
	}
	return unix.Rmdir(path) == nil
}
