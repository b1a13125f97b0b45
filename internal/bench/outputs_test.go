package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The bounds of selecting outputs.
const (
	outputFiles = 10_000
	outputBytes = 2000 // of each
	outputTime  = time.Second
	outputPeak  = 64 << 20
)

// measureOutputs lets workspace collect select ten thousand files by overlapping
// patterns.
func measureOutputs(ctx context.Context, p place, o *options, r *report) {
	s := newSubject(ctx, p, o.bin, guardFiles)
	r.head(p.where, p.base, outputFiles)
	_, id, path := s.create()
	data := make([]byte, outputBytes)
	for i := range outputFiles {
		sub := filepath.Join(path, "outputs", fmt.Sprint("d", i%100))
		s.m.fail(os.MkdirAll(sub, 0o755))
		s.m.fail(os.WriteFile(filepath.Join(sub, fmt.Sprint("f", i)), data, 0o600))
	}
	s.m.peak = 0
	var took []time.Duration
	for i := range o.runs + 1 {
		u := s.superqode("-q", "workspace", "collect", "--session", id, "--max-files", fmt.Sprint(2*outputFiles), "outputs/**/f*", "outputs/d1/**")
		if i > 0 {
			took = append(took, u.wall)
		}
	}
	r.absolute("outputs: 10,000 files by two patterns", took, outputTime)
	r.peak("peak memory", s.m.peak, outputPeak)
	s.superqode("workspace", "end", "--session", id)
	s.quiet() // a process of its own sweeps the trash
	s.m.fail(os.RemoveAll(s.base))
}
