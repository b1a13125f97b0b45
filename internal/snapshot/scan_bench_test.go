package snapshot_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// BenchmarkChanges sets what `workspace changes` does of this package (load the
// base, scan, compare) beside git status, turn by turn. TMPDIR decides on the
// file system. The ratio is that of the medians.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := gittest.Many(b, n)
			saved := filepath.Join(b.TempDir(), "base.snap")
			skip := func(p superqode.RelPath, _ snapshot.Kind) bool { return p == ".git" }
			base := snaptest.Scan(b, f.Dir, snapshot.ScanOptions{Skip: skip})
			snaptest.Must(b, base.Settle(b.Context()))
			snaptest.Must(b, base.Save(saved))
			for _, changed := range []int{0, 100} {
				for i := range changed {
					snaptest.Must(b, os.WriteFile(f.Path(gittest.ManyPath(i*n/100)), fmt.Appendf(nil, "changed %d", i), 0o644))
				}
				b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
					var git, load, walk, whole []time.Duration
					for b.Loop() {
						git = append(git, took(func() { benchStatus(b, f) }))
						runtime.GC()
						start := time.Now()
						base, err := snapshot.Load(saved)
						snaptest.Must(b, err)
						load = append(load, time.Since(start))
						final := snaptest.Scan(b, f.Dir, snapshot.ScanOptions{Previous: base, Known: base.Known(), Skip: skip})
						walk = append(walk, time.Since(start)-load[len(load)-1])
						if got := snapshot.Compare(base, final, snapshot.CompareOptions{Renames: true}); len(got) != changed {
							b.Fatalf("%d changes, want %d", len(got), changed)
						}
						whole = append(whole, time.Since(start))
					}
					b.ReportMetric(median(git), "git-ms")
					b.ReportMetric(median(load), "load-ms")
					b.ReportMetric(median(walk), "scan-ms")
					b.ReportMetric(median(whole)/median(git), "ratio")
				})
			}
		})
	}
}

// benchStatus runs git status as a script would.
func benchStatus(b *testing.B, f *gittest.Fixture) {
	cmd := exec.CommandContext(b.Context(), "git", "status", "--porcelain=v2", "-uall")
	cmd.Dir, cmd.Env = f.Dir, append(f.Env(), "GIT_OPTIONAL_LOCKS=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git status: %v\n%s", err, out)
	}
}

func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// median is in milliseconds.
func median(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// BenchmarkScan measures a scan without anything known.
func BenchmarkScan(b *testing.B) {
	dir := gittest.Many(b, 100_000).Dir
	for name, contents := range map[string]snapshot.Contents{"stat": snapshot.StatOnly, "read": snapshot.ReadUnknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				snaptest.Scan(b, dir, snapshot.ScanOptions{Contents: contents})
			}
		})
	}
}

// BenchmarkSave measures Save, Load and Digest of 100,000 entries.
func BenchmarkSave(b *testing.B) {
	s := snaptest.Scan(b, gittest.Many(b, 100_000).Dir, snapshot.ScanOptions{})
	path := filepath.Join(b.TempDir(), "s")
	b.Run("save", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			snaptest.Must(b, s.Save(path))
		}
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := snapshot.Load(path)
			snaptest.Must(b, err)
		}
	})
	b.Run("digest", func(b *testing.B) {
		for b.Loop() {
			sum(b, s)
		}
	})
	st, err := os.Stat(path)
	snaptest.Must(b, err)
	b.Logf("%d entries, %d bytes", len(s.Entries), st.Size())
}
