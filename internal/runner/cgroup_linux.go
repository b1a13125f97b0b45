package runner

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// cgroup is a control group of one run, of version 2 or 1. A nil one has no
// members and does nothing.
type cgroup struct {
	path string
	dir  *os.File
}

// newCgroup makes a group of version 2 below our own, or returns nil: the
// hierarchy is often not writable, and then the process table has to suffice.
func newCgroup() *cgroup { return makeCgroup(OwnCgroup()) }

// makeCgroup makes a group below another one; it returns nil where that is "", or
// not writable.
func makeCgroup(parent string) *cgroup {
	if parent == "" {
		return nil
	}
	path := filepath.Join(parent, fmt.Sprintf("superqode-%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:8])))
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

// OwnCgroup returns the folder of this process's version 2 group, or "".
func OwnCgroup() string { return ownGroup("") }

// ownGroup returns the folder of the group that this process is in, or "": in the
// version 1 hierarchy of a controller, or, where that is "", in version 2, which
// hybrid machines have at /sys/fs/cgroup/unified.
func ownGroup(controller string) string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	group := ""
	for line := range strings.Lines(string(own)) { // "4:memory:/path", in version 2 "0::/path"
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			group = f[2]
		}
	}
	f, err := os.Open("/proc/self/mountinfo")
	if group == "" || err != nil {
		return ""
	}
	defer f.Close()
	return findGroup(bufio.NewScanner(f), group, controller)
}

// findGroup looks up in mountinfo where group is mounted (proc_pid_mountinfo(5):
// field 4 is the root within the file system, field 5 the mount point; after the
// dash come the file system's kind, its source and its options).
func findGroup(mounts *bufio.Scanner, group, controller string) string {
	for mounts.Scan() {
		head, tail, ok := strings.Cut(mounts.Text(), " - ")
		kind := strings.Fields(tail)
		if !ok || len(kind) < 3 {
			continue
		}
		old := kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), controller)
		f := strings.Fields(head)
		if !old && (controller != "" || kind[0] != "cgroup2") || len(f) < 5 || strings.Contains(f[4], `\`) {
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
	if c != nil {
		_ = c.write("cgroup.kill", "1")
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

// limitedCgroup makes a group of version 2 that enforces the limits of memory
// and processes, or returns nil if that is not possible. Processor time alone
// needs no controller.
func limitedCgroup(l Limits) *cgroup {
	need, settings := cgroupSettings(l)
	if len(need) == 0 && l.CPUTime == 0 {
		return nil
	}
	return boundCgroup(need, settings)
}

// cgroupSettings returns the controllers that limits need, and what to write
// into which file; a file with "?" before its name may be missing.
func cgroupSettings(l Limits) (need []string, settings [][2]string) {
	if l.Memory > 0 {
		need = append(need, "memory")
		// A process that runs out of memory takes all others with it, since the
		// limit is for all of them.
		settings = append(settings, [2]string{"memory.max", strconv.FormatInt(l.Memory, 10)},
			[2]string{"memory.oom.group", "1"}, [2]string{"?memory.swap.max", "0"})
	}
	if l.Pids > 0 {
		need = append(need, "pids")
		settings = append(settings, [2]string{"pids.max", strconv.Itoa(l.Pids)})
	}
	return need, settings
}

// boundCgroup makes a group with these controllers and settings, or returns nil.
func boundCgroup(need []string, settings [][2]string) *cgroup {
	for _, parent := range cgroupParents(need) {
		cg := makeCgroup(parent)
		if cg == nil {
			continue
		}
		// The parent may have to hand the controllers down first.
		above := &cgroup{path: parent}
		offers := cg.offers(need) || above.write("cgroup.subtree_control", "+"+strings.Join(need, " +")) == nil &&
			cg.offers(need)
		if offers && cg.set(settings) {
			return cg
		}
		cg.remove()
	}
	return nil
}

// cgroupParents returns the groups below which one could be made: our own, and
// the one above. A group that holds processes, as ours does, cannot hand its
// controllers down, so a group beside it is often the only way; but not if the
// program would escape a limit of ours.
func cgroupParents(need []string) []string {
	own := OwnCgroup()
	if own == "" {
		return nil
	}
	list := []string{own}
	if len(need) > 0 && unlimited(own) {
		if up := filepath.Dir(own); atomicfile.Exists(filepath.Join(up, "cgroup.procs")) {
			list = append(list, up)
		}
	}
	return list
}

func unlimited(group string) bool {
	for _, name := range []string{"memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"} {
		b, err := os.ReadFile(filepath.Join(group, name))
		if err == nil && !bytes.HasPrefix(b, []byte("max")) {
			return false
		}
	}
	return true
}

func (c *cgroup) offers(need []string) bool {
	b, _ := os.ReadFile(filepath.Join(c.path, "cgroup.controllers"))
	have := strings.Fields(string(b))
	return !slices.ContainsFunc(need, func(n string) bool { return !slices.Contains(have, n) })
}

// set writes settings; a file with "?" before its name may be missing.
func (c *cgroup) set(settings [][2]string) bool {
	for _, s := range settings {
		file, optional := strings.CutPrefix(s[0], "?")
		if err := c.write(file, s[1]); err != nil && !(optional && errors.Is(err, os.ErrNotExist)) {
			return false
		}
	}
	return true
}

func (c *cgroup) has(file string) bool {
	return c != nil && atomicfile.Exists(filepath.Join(c.path, file))
}

// number reads a number from a file of the group: the one after key, or the whole
// file where key is "". What cannot be read counts as 0.
func (c *cgroup) number(file, key string) int64 {
	if c == nil {
		return 0
	}
	b, _ := os.ReadFile(filepath.Join(c.path, file))
	for line := range strings.Lines(string(b)) {
		name, value, two := strings.Cut(strings.TrimSpace(line), " ")
		if key == "" {
			value = name
		} else if !two || name != key {
			continue
		}
		n, _ := strconv.ParseInt(value, 10, 64)
		return n
	}
	return 0
}

// write writes one setting. It never creates a file.
func (c *cgroup) write(file, value string) error {
	f, err := os.OpenFile(filepath.Join(c.path, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
