package linked

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// BenchmarkCreate measures Create against git worktree add --detach, in turn and
// in the same run, and reports ratios of medians: "create/add" alone,
// "+status" with the first git status on both sides, "dirty/add" with 100
// modified and 200 untracked files against the add alone. SUPERQODE_BENCH_DIR
// says on which file system (default: the temporary folder).
//
//	go test -run '^$' -bench Create -benchtime 7x ./internal/linked
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchCreate(b, n) })
	}
}

func benchCreate(b *testing.B, n int) {
	dir, err := os.MkdirTemp(os.Getenv("SUPERQODE_BENCH_DIR"), "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := gittest.ManyIn(b, filepath.Join(dir, "repo"), n)
	m := &measure{b: b, f: f, dir: dir}
	for range b.N {
		m.round("create", "add")
	}
	for i := range 100 {
		f.Write(gittest.ManyPath(i*(n/100)), fmt.Sprintf("changed %d\n", i))
	}
	for i := range 200 {
		f.Write(fmt.Sprintf("fresh/%d/file-%d.txt", i%10, i), fmt.Sprintf("untracked %d\n", i))
	}
	for range b.N {
		m.round("dirty", "")
	}
	add := m.median("add")
	b.ReportMetric(float64(add.Microseconds())/1000, "add-ms")
	b.ReportMetric(float64(m.median("create"))/float64(add), "create/add")
	b.ReportMetric(float64(m.median("create+status"))/float64(m.median("add+status")), "+status")
	b.ReportMetric(float64(m.median("dirty"))/float64(add), "dirty/add")
	b.ReportMetric(0, "ns/op")
}

// measure gathers durations by name.
type measure struct {
	b     *testing.B
	f     *gittest.Fixture
	dir   string
	times map[string][]time.Duration
}

func (m *measure) note(name string, d time.Duration) {
	if m.times == nil {
		m.times = map[string][]time.Duration{}
	}
	m.times[name] = append(m.times[name], d)
}

func (m *measure) median(name string) time.Duration {
	slices.Sort(m.times[name])
	return m.times[name][len(m.times[name])/2]
}

// round makes one workspace in our way and one in git's, each with the first
// status, and takes both away again.
func (m *measure) round(ours, theirs string) {
	b := m.b
	opt := options(b, m.f, m.f.Dir, Working)
	opt.Path = filepath.Join(m.dir, opt.ID.String())
	start := time.Now()
	g, err := git.Find(b.Context(), m.f.Env()) // what the process does before, so that it counts
	if err != nil {
		b.Fatal(err)
	}
	if opt.Repo, err = g.Discover(b.Context(), m.f.Dir); err != nil {
		b.Fatal(err)
	}
	res, err := Create(b.Context(), opt)
	if err != nil {
		b.Fatal(err)
	}
	m.note(ours, time.Since(start))
	m.f.GitIn(opt.Path, "status", "--porcelain=v2", "-uall")
	m.note(ours+"+status", time.Since(start))
	if err := Remove(b.Context(), opt.Repo, res.AdminDir, opt.Path, filepath.Join(m.dir, "trash")); err != nil {
		b.Fatal(err)
	}
	if _, err := trash.Sweep(b.Context(), filepath.Join(m.dir, "trash"), 0); err != nil {
		b.Fatal(err)
	}
	if theirs == "" {
		return
	}
	path := filepath.Join(m.dir, "theirs")
	start = time.Now()
	m.f.Git("worktree", "add", "-q", "--detach", path)
	m.note(theirs, time.Since(start))
	m.f.GitIn(path, "status", "--porcelain=v2", "-uall")
	m.note(theirs+"+status", time.Since(start))
	m.f.Git("worktree", "remove", "--force", path)
}
