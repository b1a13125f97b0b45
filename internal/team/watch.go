package team

import (
	"context"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/radar"
)

// The workspaces of agents at work are looked at every watchEvery, or less often
// where a look takes long: then superqode uses a tenth of the time at most.
const (
	watchEvery = time.Second
	watchShare = 10
)

// watch looks at the agents' workspaces until the returned function is called:
// for when each change was first seen, for how many there are, and for what would
// conflict.
func (t *Team) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause := watchEvery
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			began := time.Now()
			t.glance(ctx)
			pause = max(watchEvery, watchShare*time.Since(began))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// glance looks once. What goes wrong is of no consequence: the end looks again.
func (t *Team) glance(ctx context.Context) {
	list, counts, err := radar.In(ctx, t.s.Host, t.s.Project)
	if err != nil {
		if ctx.Err() == nil {
			t.s.Log.Debug().Err(err).Msg("radar")
		}
		return
	}
	t.mu.Lock()
	id := t.s.Rec.ID
	for i := range t.status {
		st := &t.status[i]
		st.Conflicts = countConflicts(list, radar.Side{Session: id, Agent: st.Agent})
		for _, c := range counts {
			if c.Session == id && (c.Agent == st.Agent || t.opt.Shared) {
				st.Changes = c.Changes
			}
		}
	}
	t.mu.Unlock()
	t.tell()
}

// countConflicts counts the paths of one side that conflict.
func countConflicts(list []radar.Conflict, side radar.Side) int {
	paths := map[superqode.RelPath]bool{}
	for _, c := range list {
		if c.A == side || c.B == side {
			paths[c.Path] = true
		}
	}
	return len(paths)
}
