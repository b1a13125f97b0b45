package watch

import (
	"context"
	"time"
)

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
