package watch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// sweep looks at everything and records a hint about each path that differs
// from what is known, and about those that are gone. It calls first for each
// folder before it reads it, so that the watch is older than the reading; with
// learn it records what it finds as known instead.
func (e *engine) sweep(ctx context.Context, learn bool, first func(rel string) error) error {
	e.whole.Lock()
	defer e.whole.Unlock()
	err := e.sweepBelow(ctx, "", learn, first)
	e.know.Lock()
	e.release()
	e.know.Unlock()
	return err
}

// sweepBelow is sweep for one folder.
func (e *engine) sweepBelow(ctx context.Context, rel string, learn bool, first func(rel string) error) error {
	seen := map[string]struct{}{}
	if err := e.sweepDir(ctx, rel, learn, seen, first); err != nil || learn {
		return err
	}
	var lost []string
	e.know.Lock()
	if _, known := e.find(rel); known || rel == "" {
		e.below(rel, func(p string, _ Stamp) {
			if _, ok := seen[p]; !ok {
				lost = append(lost, p)
			}
		})
	}
	e.know.Unlock()
	now := time.Now()
	for _, p := range lost {
		e.touch(p, now)
	}
	return nil
}

func (e *engine) sweepDir(
	ctx context.Context, rel string, learn bool, seen map[string]struct{}, first func(string) error,
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if first != nil {
		if err := first(rel); err != nil {
			return err
		}
	}
	// Read in pieces: a folder with a million files is no reason to hold them all.
	d, err := os.Open(filepath.Join(e.opt.Root, rel))
	if err != nil {
		return nil // gone meanwhile, or not readable: there is nothing to report
	}
	defer d.Close()
	var dirs []string
	for {
		list, err := d.ReadDir(1024)
		now := time.Now()
		for _, entry := range list {
			p := entry.Name()
			if rel != "" {
				p = rel + "/" + p
			}
			if e.opt.ignored(p) {
				continue
			}
			if learn && e.inBaseline(p, entry.Type()) {
				if entry.IsDir() {
					dirs = append(dirs, p)
				}
				continue
			}
			s, ok := e.stat(p)
			if !ok {
				continue
			}
			if !learn {
				seen[p] = struct{}{}
			}
			e.meet(p, s, learn, now)
			if s.isDir() {
				dirs = append(dirs, p)
			}
		}
		if err != nil || len(list) == 0 {
			break
		}
	}
	for _, p := range dirs {
		if err := e.sweepDir(ctx, p, learn, seen, first); err != nil {
			return err
		}
	}
	return nil
}

// inBaseline reports whether the baseline has something of that type at a path.
// At the start it does not compare more: in a big folder that would take longer
// than many programs run.
func (e *engine) inBaseline(p string, kind fs.FileMode) bool {
	if e.base == nil {
		return false
	}
	s, ok := e.base.Find(p)
	return ok && s.Mode.Type() == kind
}

// meet records what is at a path.
func (e *engine) meet(p string, s Stamp, learn bool, now time.Time) {
	e.know.Lock()
	before, known := e.find(p)
	if learn && e.base == nil {
		e.index.learn(p, s)
	}
	e.know.Unlock()
	if (!learn || e.base != nil) && (!known || !before.same(s)) {
		e.touch(p, now)
	}
}

// poller looks at everything again and again, and never for more than a tenth of
// the time.
type poller struct {
	e     *engine
	every time.Duration
	begun bool // another source has reported the initial state
}

func (p *poller) run(ctx context.Context, ready func()) error {
	if err := p.e.sweep(ctx, !p.begun, nil); err != nil {
		return nil // the context ended
	}
	ready()
	pause := p.every
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		start := time.Now()
		if p.e.rootGone() {
			return p.e.lostRoot()
		}
		if err := p.e.sweep(ctx, false, nil); err != nil {
			return nil
		}
		pause = max(p.every, 10*time.Since(start))
	}
}

// lostRoot reports that everything is gone.
func (e *engine) lostRoot() error {
	now := time.Now()
	e.know.Lock()
	var all []string
	e.below("", func(p string, _ Stamp) { all = append(all, p) })
	e.know.Unlock()
	for _, p := range all {
		e.touch(p, now)
	}
	return ErrRootGone
}
