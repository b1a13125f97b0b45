package runner

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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
		settings = append(settings, [2]string{"memory.max", strconv.FormatInt(l.Memory, 10)}, [2]string{"memory.oom.group", "1"}, [2]string{"?memory.swap.max", "0"})
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
		if cg.offers(need) || enable(parent, need) && cg.offers(need) {
			if cg.set(settings) {
				return cg
			}
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
		if up := filepath.Dir(own); fileExists(filepath.Join(up, "cgroup.procs")) {
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

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// enable hands controllers down from a group to its subgroups.
func enable(parent string, need []string) bool {
	return writeGroup(parent, "cgroup.subtree_control", "+"+strings.Join(need, " +")) == nil
}

func (c *cgroup) offers(need []string) bool {
	b, _ := os.ReadFile(filepath.Join(c.path, "cgroup.controllers"))
	have := strings.Fields(string(b))
	return !slices.ContainsFunc(need, func(n string) bool { return !slices.Contains(have, n) })
}

func (c *cgroup) set(settings [][2]string) bool {
	for _, s := range settings {
		file, optional := strings.CutPrefix(s[0], "?")
		if writeGroup(c.path, file, s[1]) != nil && !optional {
			return false
		}
	}
	return true
}

func (c *cgroup) has(file string) bool { return c != nil && fileExists(filepath.Join(c.path, file)) }

func (c *cgroup) number(file, key string) int64 {
	if c == nil {
		return 0
	}
	return groupNumber(c.path, file, key)
}

// groupNumber reads a number from a group's file: the one after key, or the whole
// file where key is "". What cannot be read counts as 0.
func groupNumber(group, file, key string) int64 {
	b, err := os.ReadFile(filepath.Join(group, file))
	if err != nil {
		return 0
	}
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

// writeGroup writes one setting. It never creates a file.
func writeGroup(group, file, value string) error {
	f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// newOldGroup makes a group below our own in the version 1 hierarchy of a
// controller, or returns "".
func newOldGroup(controller string) string {
	parent := ownOldGroup(controller)
	if parent == "" {
		return ""
	}
	sweepCgroups(parent)
	path := filepath.Join(parent, groupName())
	if os.Mkdir(path, 0o755) != nil {
		return ""
	}
	return path
}

func groupName() string {
	return fmt.Sprintf("superqode-%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:8]))
}

// ownOldGroup returns the folder of the group that this process is in, in the
// version 1 hierarchy of a controller, or "".
func ownOldGroup(controller string) string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	group := ""
	for line := range strings.Lines(string(own)) { // "4:memory:/path"
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
	return findGroup(bufio.NewScanner(f), group, func(kind, options string) bool {
		return kind == "cgroup" && slices.Contains(strings.Split(options, ","), controller)
	})
}
