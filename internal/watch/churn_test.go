package watch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// churn changes a folder at random; steps that are not possible are passed over.
func churn(t *testing.T, root string, steps int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	t.Logf("%d steps", steps)
	name := func() string {
		p := root
		for range 1 + r.IntN(3) {
			p = filepath.Join(p, fmt.Sprintf("n%d", r.IntN(4)))
		}
		return p
	}
	for range steps {
		p := name()
		switch r.IntN(6) {
		case 0, 1:
			_ = os.WriteFile(p, []byte(fmt.Sprint(r.IntN(1000))), 0o644)
		case 2:
			_ = os.MkdirAll(p, 0o755)
		case 3:
			_ = os.RemoveAll(p)
		default:
			_ = os.Rename(p, name())
		}
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
		}
	}
}

func tree(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && p != root {
			rel, _ := filepath.Rel(root, p)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
