package runner

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

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

func watchDisk(l Limits) *diskWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &diskWatch{folders: l.DiskFolders, limit: l.Disk, over: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	w.before = diskUsage(ctx, w.folders)
	return w
}

func (w *diskWatch) start(ctx context.Context) {
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
