package bench

import (
	"context"
	"crypto/sha1" //nolint:gosec // the hash that git names contents with
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// The bounds of sessions that work in the origin itself, and of copies and
// proofs.
const (
	boundOpen        = 0.4
	boundRestore     = 0.8
	boundUntouched   = 1.5
	boundCopy        = 0.7
	boundFullPercent = 0.6 // of the speed of hashing alone
	changedInPlace   = 100
)

// inPlace measures git_snapshot sessions beside what a user would do with git
// stash, on a repository with more and more dirty files.
func (s *subject) inPlace(runs, n int, r *report) {
	made := 0
	for _, dirty := range []int{0, 100, 5000} {
		if dirty > n/2 {
			break
		}
		s.makeDirty(made, dirty, n)
		made = dirty
		s.openAndLeave(runs, dirty, n, r)
		s.changeAndRestore(runs, dirty, n, r)
	}
}

// makeDirty makes dirty files out of the first from ones: four of five are
// modified, one is untracked.
func (s *subject) makeDirty(from, to, n int) {
	for i := from; i < to; i++ {
		if i%5 == 4 {
			s.Write(fmt.Sprintf("untracked/%d/file_%d.txt", i%20, i), strings.Repeat(fmt.Sprintln("untracked", i), 200))
			continue
		}
		s.append(s.Path(gittest.ManyPath(i * (n / 2 / max(to, 1)) % n)))
	}
}

// sh runs several commands as one, in the origin.
func (s *subject) sh(script string) cost { return s.m.run(s.Dir, "sh", "-c", script) }

// openInPlace opens a git_snapshot session and returns its id.
func (s *subject) openInPlace() (cost, string) {
	c := s.superqode("workspace", "create", "--git-snapshot")
	id, _, _ := strings.Cut(c.stdout, "\t")
	return c, id
}

// openAndLeave measures a session in which nothing happens.
func (s *subject) openAndLeave(runs, dirty, n int, r *report) {
	var open, end, stash, status []time.Duration
	for i := range runs + 1 {
		s.quiet()
		o, id := s.openInPlace()
		e := s.superqode("workspace", "end", "--session", id)
		s.quiet()
		st := s.git(s.Dir, "status", "--porcelain=v2", "-uall")
		both := s.sh("git stash push -u -q; git stash apply --index -q 2>/dev/null; true")
		s.sh("git stash drop -q 2>/dev/null; true")
		if i > 0 {
			open, end, stash, status = append(open, o.wall), append(end, e.wall), append(stash, both.wall), append(status, st.wall)
		}
	}
	r.ratio(fmt.Sprintf("git_snapshot open, %d dirty : stash push + apply", dirty), open, stash, bound{ratio: boundOpen, holds: n >= boundFrom})
	r.ratio(fmt.Sprintf("git_snapshot end untouched, %d dirty : status", dirty), end, status, bound{ratio: boundUntouched, holds: n >= boundFrom})
}

// changeAndRestore measures the end of a session that changed a hundred files.
func (s *subject) changeAndRestore(runs, dirty, n int, r *report) {
	change := func() {
		for i := range changedInPlace {
			s.append(s.Path(gittest.ManyPath(n/2 + i*(n/2/changedInPlace))))
		}
	}
	var end, reset []time.Duration
	for i := range runs + 1 {
		s.quiet()
		_, id := s.openInPlace()
		change()
		e := s.superqode("workspace", "end", "--session", id)
		s.quiet()
		s.sh("git stash push -u -q; git stash apply --index -q 2>/dev/null; true")
		change()
		g := s.sh("git reset --hard -q; git clean -fdq; git stash apply --index -q 2>/dev/null; true")
		s.sh("git stash drop -q 2>/dev/null; true")
		if i > 0 {
			end, reset = append(end, e.wall), append(reset, g.wall)
		}
	}
	r.ratio(fmt.Sprintf("git_snapshot end, %d changed, %d dirty : reset", changedInPlace, dirty), end, reset, bound{ratio: boundRestore, holds: n >= boundFrom})
}

// copies measures a plain copy beside cp -a, and a full proof beside hashing.
func (s *subject) copies(runs, n int, r *report) {
	plain := filepath.Join(s.base, "plain")
	s.m.fail(os.Rename(s.Dir, plain))
	s.m.fail(os.RemoveAll(filepath.Join(plain, ".git")))
	s.Dir = plain
	var ours, theirs, full, hash []time.Duration
	for i := range runs + 1 {
		s.quiet()
		c := s.superqode("workspace", "create", "--snapshot")
		id, path, _ := strings.Cut(strings.TrimSpace(c.stdout), "\t")
		v := s.superqode("workspace", "verify", "--verify", "full", "--session", id)
		h, err := hashAll(path)
		s.m.fail(err)
		s.superqode("workspace", "end", "--session", id)
		s.quiet()
		to := filepath.Join(s.base, fmt.Sprintf("copy-%d", i))
		cp := s.m.run(s.base, "cp", "-a", plain, to)
		s.m.fail(os.RemoveAll(to))
		if i > 0 {
			ours, theirs, full, hash = append(ours, c.wall), append(theirs, cp.wall), append(full, v.wall), append(hash, h)
		}
	}
	r.ratio("create --snapshot : cp -a", ours, theirs, bound{ratio: boundCopy, holds: n >= boundFrom})
	r.ratio("verify --verify full : hashing the same bytes", full, hash, bound{ratio: 1 / boundFullPercent, holds: n >= boundFrom})
}

// hashAll hashes every file below dir with all processors and returns how long
// that took.
func hashAll(dir string) (time.Duration, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	next := make(chan string, 1024)
	errs := make([]error, runtime.NumCPU())
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			buf := make([]byte, 128<<10)
			for file := range next {
				errs[w] = errors.Join(errs[w], hashFile(file, buf))
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

func hashFile(file string, buf []byte) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{sha1.New()}, f, buf)
	return err
}

// measureInPlace measures the groups that need a repository of their own
// because they change it, or make much beside it.
func measureInPlace(ctx context.Context, p place, o *options, r *report, n int) {
	for _, g := range []struct {
		name string
		do   func(s *subject)
	}{
		{"inplace", func(s *subject) { s.inPlace(o.runs, n, r) }},
		{"copy", func(s *subject) { s.copies(o.runs, n, r) }},
		{"overlay", func(s *subject) { s.overlay(o.runs, n, r) }},
	} {
		if !o.only.MatchString(g.name) || g.name == "overlay" && !overlayWorks(ctx, p, o, r) {
			continue
		}
		s := newSubject(ctx, p, o.bin, n)
		r.head(p.where, p.base, n)
		g.do(s)
		r.memory(s.m.peak, n)
		s.m.fail(os.RemoveAll(s.base))
	}
}
