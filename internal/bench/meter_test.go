package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cost is what one process took.
type cost struct {
	wall   time.Duration
	stdout string
}

// meter runs whole processes; one that fails ends the measurement.
type meter struct {
	ctx    context.Context // of the whole measurement; a meter lives no longer
	tb     testing.TB
	env    []string
	onDisk bool
	peak   int64 // bytes: the highest resident size of superqode or a child of it
}

func (m *meter) fail(err error) {
	if err != nil {
		m.tb.Helper()
		m.tb.Fatal(err)
	}
}

// run times args from start to exit. On a disk it first flushes what earlier
// commands wrote, so that no command pays for another.
func (m *meter) run(dir string, args ...string) cost {
	if m.onDisk {
		syscall.Sync()
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(m.ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, m.env, &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	c := cost{time.Since(start), stdout.String()}
	if err != nil {
		m.fail(fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes()))
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && args[0] != "git" {
		m.peak = max(m.peak, rssBytes(usage))
	}
	return c
}

// rssBytes reads ru_maxrss, which counts KiB, and bytes on macOS. On Linux it is
// never less than what this process held when it started the child.
func rssBytes(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
