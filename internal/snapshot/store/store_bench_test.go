package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// benchRepo makes a repository of n files and changes m of them.
func benchRepo(b *testing.B, n, m int) (src string, base, final *snapshot.Snapshot, changes []superqode.Change) {
	src = snaptest.Bench(b, n)
	snaptest.Git(b, src, "init", "-q")
	snaptest.Git(b, src, "add", "-A")
	snaptest.Git(b, src, "commit", "-q", "-m", "base")
	base = snaptest.Walk(b, src, true)
	changed := 0
	for _, e := range base.Entries {
		if e.Kind != snapshot.File || changed == m {
			continue
		}
		changed++
		data, err := os.ReadFile(e.Path.In(src))
		if err == nil {
			err = os.WriteFile(e.Path.In(src), append(data, "one line more\n"...), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
		changes = append(changes, superqode.Change{Path: e.Path, Type: superqode.ChangeModified})
	}
	return src, base, snaptest.Walk(b, src, true), changes
}

// cpuTime is what this process and its ended children have used; on a busy
// machine it compares better than the clock does.
func cpuTime(b *testing.B) time.Duration {
	sum := int64(0)
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		sum += r.Utime.Nano() + r.Stime.Nano()
	}
	return time.Duration(sum)
}

// BenchmarkStore sets the storing of changed files beside git stash.
func BenchmarkStore(b *testing.B) {
	for _, n := range []int{100, 300, 5000} {
		src, base, final, changes := benchRepo(b, 10_000, n)
		var entries []snapshot.Entry
		collect := func() {
			entries = entries[:0]
			for _, c := range changes {
				entries = append(entries, *final.Find(c.Path))
			}
		}
		collect()
		objects := filepath.Join(src, ".git/objects")
		b.Run(fmt.Sprintf("%d/git-stash", n), func(b *testing.B) {
			cpu := time.Duration(0)
			for range b.N {
				b.StopTimer() // git writes no object twice, so it gets new contents each time
				for _, e := range entries {
					f, err := os.OpenFile(e.Path.In(src), os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						b.Fatal(err)
					}
					_, err = f.WriteString("more\n")
					if err := errors.Join(err, f.Close()); err != nil {
						b.Fatal(err)
					}
				}
				before := cpuTime(b)
				b.StartTimer()
				snaptest.Git(b, src, "stash", "create")
				cpu += cpuTime(b) - before
			}
			b.ReportMetric(cpu.Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
		final = snaptest.Walk(b, src, true)
		collect()
		b.Run(fmt.Sprintf("%d/blobs", n), func(b *testing.B) {
			cpu := time.Duration(0)
			for range b.N {
				b.StopTimer()
				s := testStore(b, objects, snapshot.SHA1)
				before := cpuTime(b)
				b.StartTimer()
				if err := s.WriteBlobs(b.Context(), src, entries); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime(b) - before
			}
			b.ReportMetric(cpu.Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
		b.Run(fmt.Sprintf("%d/commit+diff", n), func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				s := testStore(b, objects, snapshot.SHA1)
				if err := s.WriteBlobs(b.Context(), src, entries); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				from, err := s.Commit(b.Context(), "refs/superqode/s/base", base, CommitOptions{When: time.Unix(int64(i), 0)})
				if err != nil {
					b.Fatal(err)
				}
				to, err := s.Commit(b.Context(), "refs/superqode/s/final", final, CommitOptions{Parent: from})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Diff(b.Context(), DiffOptions{Base: from, Final: to}, writerFunc(func(p []byte) (int, error) { return len(p), nil })); err != nil {
					b.Fatal(err)
				}
			}
		})
		s := testStore(b, objects, snapshot.SHA1)
		b.Run(fmt.Sprintf("%d/describe", n), func(b *testing.B) {
			before := cpuTime(b)
			for range b.N {
				if got, err := s.Describe(b.Context(), base, final, changes); err != nil || len(got) != n || got[0].LinesAdded == 0 {
					b.Fatal(len(got), err)
				}
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
		b.Run(fmt.Sprintf("%d/git-diff-numstat", n), func(b *testing.B) {
			before := cpuTime(b)
			for range b.N {
				snaptest.Git(b, src, "diff", "--numstat", "-M", "-z")
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}
