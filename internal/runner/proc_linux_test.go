package runner

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	tail := " 1 2 3 4 0 0 0 0 0 0 0 0 0 0 20 0 %d 0 777 0 0\n"
	tests := []struct {
		stat string
		ok   bool
		want proc
	}{
		{"10 (sh) S" + fmt.Sprintf(tail, 1), true, proc{pid: 10, ppid: 1, sid: 3, start: 777, threads: 1}},
		{"10 (a) Z (b) c) S" + fmt.Sprintf(tail, 1), true, proc{pid: 10, ppid: 1, sid: 3, start: 777, threads: 1}},
		{"10 (sh) Z" + fmt.Sprintf(tail, 1), true, proc{pid: 10, ppid: 1, sid: 3, start: 777, dead: true, threads: 1}},
		{"10 (sh) Z" + fmt.Sprintf(tail, 2), true, proc{pid: 10, ppid: 1, sid: 3, start: 777, threads: 2}},
		{"", false, proc{}},
		{"10 (sh) S 1 2", false, proc{}},
		{"10 sh", false, proc{}},
	}
	for _, tt := range tests {
		if p, ok := parseStat(10, []byte(tt.stat)); ok != tt.ok || p != tt.want {
			t.Errorf("%q: %+v %v", tt.stat, p, ok)
		}
	}
	if p, ok := readProc(os.Getpid(), make([]byte, 1024)); !ok || p.ppid != os.Getppid() || p.dead || p.start == 0 {
		t.Errorf("%+v %v", p, ok)
	}
}

func TestFindCgroup(t *testing.T) {
	t.Parallel()
	const hybrid = "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 20 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw\n"
	const bound = "31 20 0:27 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	tests := []struct{ mounts, group, want string }{
		{hybrid, "/", "/sys/fs/cgroup/unified"},
		{hybrid, "/user.slice/x", "/sys/fs/cgroup/unified/user.slice/x"},
		{bound, "/docker/abc", "/sys/fs/cgroup"},
		{bound, "/docker/abc/d", "/sys/fs/cgroup/d"},
		{bound, "/docker/abcd", ""},
		{bound, "/other", ""},
		{"", "/", ""},
		{hybrid, "/../out", ""},
	}
	for _, tt := range tests {
		if got := findGroup(bufio.NewScanner(strings.NewReader(tt.mounts)), tt.group, ""); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.group, got, tt.want)
		}
	}
}

// FuzzParseStat: whatever a process is called, its numbers are found behind it.
func FuzzParseStat(f *testing.F) {
	f.Add("sh", []byte("garbage"))
	f.Add(") S 1 2 3 (", []byte("1 (x) S"))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		_, _ = parseStat(1, raw)
		stat := "10 (" + name + ") S 1 2 3 4 0 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0\n"
		if p, ok := parseStat(10, []byte(stat)); !ok || p != (proc{pid: 10, ppid: 1, sid: 3, start: 777, threads: 1}) {
			t.Errorf("%q: %+v", stat, p)
		}
	})
}
