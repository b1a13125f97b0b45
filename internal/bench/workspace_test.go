package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/workspace"
)

// The bounds of the file API, against the same work by the os package.
const (
	boundWrite  = 1.3
	boundAtomic = 1.2
	boundGlob   = 1.2
	globFiles   = 100_000
	writes      = 1000 // of each measured run, so that one is not lost in the clock
	atomics     = 100
)

// measureWorkspace writes small files and looks for some among many.
func measureWorkspace(ctx context.Context, p place, o *options, r *report) {
	m := &meter{ctx: ctx, tb: p}
	dir := p.TempDir()
	r.head(p.where, p.base, globFiles)
	w, err := workspace.Open(filepath.Join(dir, "ours"))
	m.fail(errors.Join(err, os.Mkdir(filepath.Join(dir, "theirs"), 0o755)))
	data := []byte("a small file\n")
	names := make([]string, writes)
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	theirs := func(name string) string { return filepath.Join(dir, "theirs", name) }
	pair := func(what string, most float64, ours, os func()) {
		var took [2][]time.Duration
		for i := range o.runs + 1 {
			for j, do := range []func(){ours, os} {
				start := time.Now()
				do()
				if i > 0 {
					took[j] = append(took[j], time.Since(start))
				}
			}
		}
		r.ratio(what, took[0], took[1], bound{ratio: most, holds: true})
	}
	each := func(names []string, write func(name string) error) func() {
		return func() {
			for _, name := range names {
				m.fail(write(name))
			}
		}
	}
	pair("workspace: Write a thousand : os.WriteFile", boundWrite,
		each(names, func(name string) error { return w.Write(ctx, name, data) }),
		each(names, func(name string) error { return os.WriteFile(theirs(name), data, 0o644) }))
	pair("workspace: AtomicWrite a hundred : by hand", boundAtomic,
		each(names[:atomics], func(name string) error { return workspace.AtomicWrite(ctx, w, name, data) }),
		each(names[:atomics], func(name string) error { return replace(theirs(name), data) }))
	for i := range globFiles {
		sub := filepath.Join(dir, "ours", fmt.Sprint("d", i%100), fmt.Sprint("e", i%1000))
		if i < 1000 {
			m.fail(os.MkdirAll(sub, 0o755))
		}
		m.fail(os.WriteFile(filepath.Join(sub, fmt.Sprint("f", i, ".txt")), nil, 0o644))
	}
	pair("workspace: Glob among 100,000 : WalkDir", boundGlob,
		func() {
			list, err := workspace.Glob(ctx, w, "d1/**/*.txt")
			if err == nil && len(list) != globFiles/100 {
				err = fmt.Errorf("%d files were found", len(list))
			}
			all, err2 := workspace.Glob(ctx, w, "**/*7.txt")
			m.fail(errors.Join(err, err2))
			if len(all) != globFiles/10 {
				m.fail(fmt.Errorf("%d files were found", len(all)))
			}
		},
		func() {
			n := 0
			m.fail(filepath.WalkDir(filepath.Join(dir, "ours"), func(path string, _ fs.DirEntry, err error) error {
				if ok, _ := filepath.Match("*7.txt", filepath.Base(path)); ok {
					n++
				}
				return err
			}))
			if n != globFiles/10 {
				m.fail(fmt.Errorf("%d files were found", n))
			}
		})
	m.fail(errors.Join(w.Close(), os.RemoveAll(dir)))
}

// replace is the work of an atomic write: write, sync, rename, sync of the folder.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close(), os.Rename(f.Name(), path))
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
