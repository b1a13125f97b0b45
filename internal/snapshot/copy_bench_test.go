package snapshot

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// benchTree writes n files of 20 a folder, sizes as in real repositories (most
// below 8 KB, 6 KB on average), and returns its folder.
func benchTree(tb testing.TB, n int) string {
	tb.Helper()
	rnd := rand.New(rand.NewSource(1))
	text := make([]byte, 1<<18)
	for i := range text {
		text[i] = "abcdefghij klmnopqr stuvwxyz\n0123"[rnd.Intn(33)]
	}
	root := filepath.Join(tb.TempDir(), "origin")
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%d/e%d", i/400, i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				tb.Fatal(err)
			}
		}
		size := min(int(rnd.ExpFloat64()*6000), 1<<17)
		at := rnd.Intn(len(text) - size)
		if err := os.WriteFile(fmt.Sprintf("%s/file%d.go", dir, i), text[at:at+size], 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// BenchmarkCopy sets Copy beside git worktree add and beside merely creating
// the same files. TMPDIR decides on the file system.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src := benchTree(b, n)
			benchGit(b, src, "init", "-q")
			benchGit(b, src, "add", "-A")
			benchGit(b, src, "commit", "-q", "-m", "base")
			from := testWalk(b, src, true)
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
							benchGit(b, src, "worktree", "prune")
						}
					}
				})
			}
			run("git", func(dst string) { benchGit(b, src, "worktree", "add", "-q", "--detach", dst) })
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
func benchCreate(b *testing.B, s *Snapshot, dst string) {
	buf := make([]byte, 1<<18)
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Kind == Dir {
			if err := unix.Mkdir(dst+"/"+e.Path, 0o755); err != nil {
				b.Fatal(err)
			}
			continue
		}
		fd, err := unix.Open(dst+"/"+e.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
		if err != nil {
			b.Fatal(err)
		}
		_, err = unix.Write(fd, buf[:e.Size])
		if err != nil || unix.Close(fd) != nil {
			b.Fatal(err)
		}
	}
}
