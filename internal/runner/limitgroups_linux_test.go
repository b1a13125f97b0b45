package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// standing is a folder that stands for a group whose controllers this machine may
// not have: the files that the kernel would make, with what it would have written.
func standing(t *testing.T, files map[string]string) *cgroup {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &cgroup{path: dir}
}

// TestCgroupSettings holds what is written into which file of a version 2 group,
// and that a file that is missing makes the group useless, but for swap.
func TestCgroupSettings(t *testing.T) {
	t.Parallel()
	need, settings := cgroupSettings(Limits{Memory: 64 << 20, Pids: 7})
	if d := cmp.Diff([]string{"memory", "pids"}, need); d != "" {
		t.Error(d)
	}
	all := map[string]string{"memory.max": "max", "memory.oom.group": "0", "memory.swap.max": "max", "pids.max": "max"}
	for missing := range all {
		files := map[string]string{}
		for name := range all {
			if name != missing {
				files[name] = ""
			}
		}
		if got, want := standing(t, files).set(settings), missing == "memory.swap.max"; got != want {
			t.Errorf("without %s: %t", missing, got)
		}
	}
	group := standing(t, all)
	if !group.set(settings) {
		t.Fatal("not set")
	}
	for name, want := range map[string]string{"memory.max": "67108864", "memory.oom.group": "1", "memory.swap.max": "0", "pids.max": "7"} {
		if b, err := os.ReadFile(filepath.Join(group.path, name)); err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if need, settings := cgroupSettings(Limits{CPUTime: time.Second, Disk: 1}); len(need)+len(settings) > 0 {
		t.Error(need, settings)
	}
}

// TestCgroupEvents holds how a version 2 group tells what its limits did.
func TestCgroupEvents(t *testing.T) {
	t.Parallel()
	quiet := map[string]string{
		"memory.events": "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n", "pids.events": "max 0\n", "cpu.stat": "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n",
	}
	loud := map[string]string{
		"memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n", "pids.events": "max 2\n", "cpu.stat": "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n",
	}
	by := map[string]string{LimitMemory: byCgroup2, LimitPids: byCgroup2, LimitCPU: byCgroup2}
	hold := func(files map[string]string, l Limits) *hold {
		return &hold{Limits: l, by: by, group: standing(t, files)}
	}
	for name, one := range map[string]struct {
		files map[string]string
		l     Limits
		want  string
		hits  int
	}{
		"nothing":   {quiet, Limits{Memory: 1, Pids: 1, CPUTime: 2 * time.Second}, "", 0},
		"memory":    {loud, Limits{Memory: 1}, LimitMemory, 1},
		"processor": {loud, Limits{CPUTime: 2 * time.Second}, LimitCPU, 1},
		"gone":      {nil, Limits{Memory: 1, Pids: 1, CPUTime: time.Second}, "", 0},
	} {
		h := hold(one.files, one.l)
		if h.samples() {
			t.Errorf("%s: the process table is looked at", name)
		}
		if got := h.exceeded(nil); got != one.want || len(h.hits()) != one.hits {
			t.Errorf("%s: %q, %v", name, got, h.hits())
		}
	}
}

// TestCgroupLimitIsReal makes a group with a controller and a setting, puts a
// program into it at its birth and reads its limit there. It takes huge pages,
// whose controller is free where the others are held by version 1 hierarchies.
func TestCgroupLimitIsReal(t *testing.T) {
	t.Parallel()
	for _, one := range [][3]string{{"memory", "memory.max", "268435456"}, {"pids", "pids.max", "1000"}, {"hugetlb", "hugetlb.2MB.max", "268435456"}} {
		t.Run(one[0], func(t *testing.T) {
			t.Parallel()
			group := boundCgroup([]string{one[0]}, [][2]string{{one[1], one[2]}})
			if group == nil {
				t.Skipf("no cgroup of version 2 with the %s controller can be made here", one[0])
			}
			defer group.remove()
			if b, err := os.ReadFile(filepath.Join(group.path, one[1])); err != nil || strings.TrimSpace(string(b)) != one[2] {
				t.Errorf("%q %v", b, err)
			}
			cmd := exec.Command("cat", "/proc/self/cgroup")
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.dir.Fd())}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "/"+filepath.Base(group.path)+"\n") {
				t.Errorf("%s %v", out, err)
			}
		})
	}
	if group := boundCgroup([]string{"no such controller"}, nil); group != nil {
		group.remove()
		t.Error("a controller that does not exist was had")
	}
}
