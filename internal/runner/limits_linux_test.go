package runner

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// limited is a run under limits, by groups where there are any and without.
func limited(t *testing.T, name, script string, l Limits, check func(t *testing.T, res Result, err error)) {
	for _, noCgroup := range []bool{false, true} {
		t.Run(name+map[bool]string{false: "", true: " without cgroups"}[noCgroup], func(t *testing.T) {
			t.Parallel()
			spec := shell(t, "ulimit -v 4000000; "+script)
			l := l
			if l.Disk > 0 {
				l.DiskFolders = []string{spec.Dir}
			}
			spec.Limits, spec.noCgroup, spec.Grace = l, noCgroup, time.Second
			res, err := finished(t, spec)
			check(t, res, err)
		})
	}
}

func endedBy(limit string) func(*testing.T, Result, error) {
	return func(t *testing.T, res Result, err error) {
		if _, ok := errors.AsType[*LimitError](err); ok && limit == LimitPids && os.Getuid() == 0 {
			return // refused, as it must be
		}
		if err != nil || res.Limit != limit || res.ExitCode != exitLimit {
			t.Errorf("%+v %v", res, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limited(t, "memory of a tree", "hog() { x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 20; }; hog & hog & hog & hog & wait", Limits{Memory: 60 << 20}, endedBy(LimitMemory))
	limited(t, "processor time of a tree", "spin() { while :; do :; done; }; spin & spin & (setsid sh -c 'while :; do :; done' &) ; wait", Limits{CPUTime: time.Second}, endedBy(LimitCPU))
	limited(t, "processor time in short pieces", "while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done", Limits{CPUTime: 300 * time.Millisecond}, endedBy(LimitCPU))
	limited(t, "disk", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); head -c 1000000 /dev/zero >f$i; done; sleep 20", Limits{Disk: 5 << 20}, endedBy(LimitDisk))
	limited(t, "disk in one file", "head -c 50000000 /dev/zero >f", Limits{Disk: 5 << 20}, endedBy(LimitDisk))
	limited(t, "none is passed", "head -c 1000000 /dev/zero >f; exit 3", Limits{Memory: 500 << 20, CPUTime: time.Minute, Disk: 100 << 20}, func(t *testing.T, res Result, err error) {
		if err != nil || res.ExitCode != 3 || res.Limit != "" || len(res.Holdings) != 3 {
			t.Errorf("%+v %v", res, err)
		}
	})
}

func TestPidsLimit(t *testing.T) {
	t.Parallel()
	limited(t, "pids", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 3 & done; echo never", Limits{Pids: 6}, func(t *testing.T, res Result, err error) {
		if lerr, ok := errors.AsType[*LimitError](err); ok {
			if !unboundByNproc() || !strings.Contains(lerr.Error(), "--pids 6 cannot be enforced here") {
				t.Error(err)
			}
			return
		}
		if err != nil || res.ExitCode == 0 || res.Limit != LimitPids {
			t.Errorf("%+v %v", res, err)
		}
	})
}

// TestLimitsAreOfTheProgramAlone holds that what is set for a program is set for
// nobody else.
func TestLimitsAreOfTheProgramAlone(t *testing.T) {
	t.Parallel()
	spec := shell(t, "ulimit -d; ulimit -f")
	spec.Limits, spec.noCgroup = Limits{Memory: 128 << 20, Disk: 10 << 20, DiskFolders: []string{spec.Dir}}, true
	_, out, _, err := output(t, spec)
	if err != nil || out != "131072\n22528\n" {
		t.Errorf("%q %v", out, err)
	}
	_, out, _, err = output(t, shell(t, "ulimit -d"))
	if err != nil || out == "131072\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	spec := shell(t, "trap 'echo told; exit 9' TERM; (trap '' TERM; exec sleep 1000) & echo ready; while :; do sleep 0.01; done")
	kill := make(chan time.Duration, 1)
	spec.Kill = kill
	kill <- 200 * time.Millisecond
	spec.Grace = liveness
	res, _, _, err := output(t, spec)
	if err != nil || !res.Killed || res.ExitCode == 0 || res.Limit != "" {
		t.Errorf("%+v %v", res, err)
	}
}
