package frozen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// BenchmarkUnchanged compares the state of an origin that did not change with the scan
// that it cannot do without.
func BenchmarkUnchanged(b *testing.B) {
	for _, files := range []int{10_000, 100_000} {
		dir := b.TempDir()
		opt := project(dir)
		old := time.Now().Add(-time.Hour)
		for i := range files {
			name := filepath.Join(opt.Top, fmt.Sprint("folder", i/50), fmt.Sprint("file", i))
			if i%50 == 0 {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			if err := os.WriteFile(name, fmt.Append(nil, i), 0o644); err != nil {
				b.Fatal(err)
			}
			if err := os.Chtimes(name, old, old); err != nil {
				b.Fatal(err)
			}
		}
		var st *frozen.State
		for range 2 { // the second one knows all contents
			var err error
			if st, err = frozen.Current(b.Context(), opt); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprint(files, "/scan"), func(b *testing.B) {
			for b.Loop() {
				scan := snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly, Previous: st.Origin}
				if _, _, err := snapshot.Scan(b.Context(), opt.Top, scan); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint(files, "/load"), func(b *testing.B) {
			for b.Loop() {
				if _, err := snapshot.Load(st.Origin.File); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint(files, "/current"), func(b *testing.B) {
			for b.Loop() {
				now, err := frozen.Current(b.Context(), opt)
				if err != nil || now.Number != st.Number {
					b.Fatal(now.Number, err)
				}
			}
		})
	}
}
