package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Limits bound all processes of a run together. A field that is zero is no limit.
type Limits struct {
	// Memory is in bytes, swap included.
	Memory int64
	// Pids is the number of processes and threads at one time.
	Pids int
	// CPUTime is the processor time of all processes together, ended ones
	// included.
	CPUTime time.Duration
	// Disk is the number of bytes by which DiskFolders may grow while the
	// program runs. What it writes elsewhere does not count.
	Disk        int64
	DiskFolders []string
}

// The names of the limits, as Result.Limit and LimitError give them.
const (
	LimitMemory = "memory"
	LimitPids   = "pids"
	LimitCPU    = "cpu_time"
	LimitDisk   = "disk"
)

// exitLimit is the exit code of a run that a limit ended: that of a killed
// program, as docker reports it.
const exitLimit = 137

func (l Limits) any() bool { return l.Memory > 0 || l.Pids > 0 || l.CPUTime > 0 || l.Disk > 0 }

// Holding says how a limit is enforced here.
type Holding struct {
	Limit string `json:"limit"` // memory, pids, cpu_time or disk
	Value int64  `json:"value"` // bytes, processes or nanoseconds
	By    string `json:"by"`    // "cgroup2", "cgroup1", "rlimit" (with sampling) or "sampling"
}

// LimitError means that a requested limit cannot be enforced, so the program
// was not started.
type LimitError struct {
	Limit   string // memory, pids, cpu_time or disk
	Value   string // as a person would write it
	Missing string // what is missing
}

// Error names the flag, its value and what is missing.
func (e *LimitError) Error() string {
	flag := map[string]string{LimitMemory: "--memory", LimitPids: "--pids", LimitCPU: "--cpu-time",
		LimitDisk: "--max-disk"}[e.Limit]
	return fmt.Sprintf("%s %s cannot be enforced here: %s", flag, e.Value, e.Missing)
}

// value formats a limit's value for people.
func (l Limits) value(limit string) string {
	switch limit {
	case LimitMemory:
		return strconv.FormatInt(l.Memory, 10)
	case LimitPids:
		return strconv.Itoa(l.Pids)
	case LimitCPU:
		return l.CPUTime.String()
	}
	return strconv.FormatInt(l.Disk, 10)
}

// refuse makes the error for a limit that cannot be enforced.
func (l Limits) refuse(limit, missing string) error {
	return &LimitError{Limit: limit, Value: l.value(limit), Missing: missing}
}

// CheckLimits tries whether the limits can be enforced here and reports how,
// without running anything. The error is a *LimitError.
func CheckLimits(l Limits) ([]Holding, error) {
	if !l.any() {
		return nil, nil
	}
	h, err := newHold(l, false)
	if err != nil {
		return nil, err
	}
	defer h.release()
	return h.holdings, nil
}

// diskWatch measures again and again how much the folders have grown.
type diskWatch struct {
	folders []string
	limit   int64
	before  int64
	over    chan struct{} // closed when the limit is exceeded
	cancel  context.CancelFunc
	done    chan struct{}
}

// lookPause is the shortest time between two measurements; after one that takes
// long the pause is ten times as long.
const lookPause = 100 * time.Millisecond

// watchDisk prepares a watch from what the folders hold now.
func watchDisk(l Limits) *diskWatch {
	return &diskWatch{
		folders: l.DiskFolders, limit: l.Disk, before: diskUsage(context.Background(), l.DiskFolders),
		over: make(chan struct{}), done: make(chan struct{}),
	}
}

// start begins to measure, until cancel is called.
func (w *diskWatch) start() {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	go w.run(ctx)
}

func (w *diskWatch) run(ctx context.Context) {
	defer close(w.done)
	for {
		begin := time.Now()
		now := diskUsage(ctx, w.folders)
		if ctx.Err() != nil {
			return
		}
		if now-w.before > w.limit {
			close(w.over)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(lookPause, 10*time.Since(begin))):
		}
	}
}

// grown is the last measurement, after everything has ended.
func (w *diskWatch) grown() bool {
	w.cancel()
	<-w.done
	return diskUsage(context.Background(), w.folders)-w.before > w.limit
}

// diskUsage adds up the space that the files below the folders take; a file
// with several hard links counts once. What disappears meanwhile does not
// count.
func diskUsage(ctx context.Context, folders []string) (sum int64) {
	linked := map[inode]bool{}
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			n, key, many := blocksOf(info)
			if many {
				if linked[key] {
					return nil
				}
				linked[key] = true
			}
			sum += n
			return nil
		})
	}
	return sum
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }

func blocksOf(info os.FileInfo) (bytes int64, id inode, many bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	id.dev, id.ino = uint64(st.Dev), st.Ino
	return st.Blocks * 512, id, st.Nlink > 1 && !info.IsDir()
}
