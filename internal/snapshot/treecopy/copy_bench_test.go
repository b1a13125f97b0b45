package treecopy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// BenchmarkCopy sets Copy beside git worktree add and beside merely creating
// the same files. TMPDIR decides on the file system.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src := snaptest.Bench(b, n)
			snaptest.Git(b, src, "init", "-q")
			snaptest.Git(b, src, "add", "-A")
			snaptest.Git(b, src, "commit", "-q", "-m", "base")
			from := snaptest.Walk(b, src, true)
			from.Taken = time.Now().Add(time.Hour)
			run := func(name string, f func(dst string)) {
				b.Run(name, func(b *testing.B) {
					b.StopTimer()
					for i := range b.N {
						dst := filepath.Join(filepath.Dir(src), fmt.Sprintf("dst%d", i))
						if name != "git" {
							if err := os.Mkdir(dst, 0o755); err != nil {
								b.Fatal(err)
							}
						}
						b.StartTimer()
						f(dst)
						b.StopTimer()
						if err := os.RemoveAll(dst); err != nil {
							b.Fatal(err)
						}
						if name == "git" {
							snaptest.Git(b, src, "worktree", "prune")
						}
					}
				})
			}
			run("git", func(dst string) { snaptest.Git(b, src, "worktree", "add", "-q", "--detach", dst) })
			for _, workers := range []int{1, 2, 3, 4} {
				run(fmt.Sprintf("copy-%d", workers), func(dst string) {
					if _, p, err := Copy(b.Context(), from, dst, CopyOptions{Workers: workers}); err != nil || p != nil {
						b.Fatal(err, p)
					}
				})
			}
			run("create", func(dst string) { benchCreate(b, from, dst) })
		})
	}
}

// benchCreate makes the folders and files of s with one write each.
func benchCreate(b *testing.B, s *snapshot.Snapshot, dst string) {
	buf := make([]byte, 1<<18)
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Kind == snapshot.Dir {
			if err := unix.Mkdir(dst+"/"+string(e.Path), 0o755); err != nil {
				b.Fatal(err)
			}
			continue
		}
		fd, err := unix.Open(dst+"/"+string(e.Path), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
		if err != nil {
			b.Fatal(err)
		}
		_, err = unix.Write(fd, buf[:e.Size])
		if err != nil || unix.Close(fd) != nil {
			b.Fatal(err)
		}
	}
}
