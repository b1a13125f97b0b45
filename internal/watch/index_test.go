package watch

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBelow holds below, which looks paths up, against a walk through all that is
// known.
func TestBelow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := &index{known: map[string]Stamp{}}
	want := map[string]Stamp{}
	name := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = []string{"a", "a-", "a.", "b", "a0", "\xff"}[r.IntN(6)]
		}
		return strings.Join(parts, "/")
	}
	for i := range 20000 {
		p := name()
		if r.IntN(3) == 0 {
			p += fmt.Sprint(i)
		}
		switch r.IntN(4) {
		case 0:
			x.forget(p)
			delete(want, p)
		case 1:
			if i%50 == 0 {
				x.release()
			}
		default:
			s := Stamp{Mode: 0o644, Ino: uint64(i + 1)}
			x.learn(p, s)
			want[p] = s
		}
		if i%20 > 0 {
			continue
		}
		for _, dir := range []string{"", "a", p} {
			got := map[string]Stamp{}
			x.below(dir, func(p string, s Stamp) { got[p] = s })
			for p, s := range want {
				if in := dir == "" || strings.HasPrefix(p, dir+"/"); in != (got[p] == s) {
					t.Fatalf("step %d: below %q: %q is %v, want %v, %v", i, dir, p, got[p], s, in)
				}
			}
			for _, p := range slices.Sorted(maps.Keys(got)) {
				if _, ok := want[p]; !ok {
					t.Fatalf("step %d: below %q: %q, which is gone", i, dir, p)
				}
			}
		}
	}
}

// BenchmarkForget deletes 5,000 folders of ten files from the bottom up, as rm -r
// does, with a look in between at each.
func BenchmarkForget(b *testing.B) {
	for b.Loop() {
		e := newEngine(Options{Root: b.TempDir()}, rootInfo(b))
		for d := range 5000 {
			dir := fmt.Sprintf("n/d%04d", d)
			e.learn(dir, Stamp{Mode: fs.ModeDir | 0o755, Ino: uint64(d + 1)})
			for f := range 10 {
				e.learn(fmt.Sprintf("%s/f%d", dir, f), Stamp{Mode: 0o644, Ino: uint64(100000 + d*10 + f)})
			}
		}
		x := newBatch(e)
		for d := range 5000 {
			for f := range 10 {
				x.look(fmt.Sprintf("n/d%04d/f%d", d, f), time.Time{})
			}
			x.look(fmt.Sprintf("n/d%04d", d), time.Time{})
		}
		if n := len(x.gone); n != 55000 {
			b.Fatal(n)
		}
	}
}

func rootInfo(tb testing.TB) os.FileInfo {
	tb.Helper()
	st, err := os.Lstat(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return st
}
