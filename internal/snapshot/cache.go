package snapshot

import (
	"context"
	"time"

	"github.com/seed-2d964004/superqode"
)

// maxTick is the longest step of a clock that stamps files (CONFIG_HZ=100).
const maxTick = 10 * time.Millisecond

// racyWindow is how long before a snapshot was taken a file must have changed
// last for its stat data to prove its content. A file can change twice within
// one step of the clock that stamps it and show the same times.
func racyWindow() time.Duration { return clockTick() + time.Millisecond }

// coarseWindow is the same for file systems that keep whole seconds (FAT: two).
const coarseWindow = 2 * time.Second

// vouches reports whether the stat data of p, an entry of s, prove that a file
// that still has them was not changed since it was looked at.
func (s *Snapshot) vouches(p *Entry) bool {
	return max(p.Stat.Mtime, p.Stat.Ctime) < s.Taken.Add(-window(p)).UnixNano()
}

// window is how long before the snapshot an entry must have changed last.
func window(p *Entry) time.Duration {
	if p.Stat.Ctime%int64(time.Second) == 0 { // a finer clock shows this once in a million files
		return coarseWindow
	}
	return racyWindow()
}

// Known returns s as a cache: it answers the content id of a file that has the
// device, inode, size, mtime and ctime (both in nanoseconds) that s recorded, if
// both times lie far enough before the snapshot was taken.
func (s *Snapshot) Known() Known { return snapshotKnown{s} }

type snapshotKnown struct{ s *Snapshot }

// Lookup answers from the snapshot.
func (k snapshotKnown) Lookup(path superqode.RelPath, e *Entry) (ID, bool) {
	p := k.s.Find(path)
	if p == nil || p.ID.IsZero() || !p.SameState(e) || !k.s.vouches(p) {
		return ID{}, false
	}
	return p.ID, true
}

// Settle makes a snapshot of a directory to which nobody else has written since
// useful as a cache at once: it waits until the last change of any entry lies
// far enough in the past (a step of the clock, two seconds where the file system
// keeps whole seconds) and sets Taken to now. A program that is started afterwards can then
// change no file unseen. Without it every file that a copy has just made counts
// as changed too lately and is read again by each scan.
func (s *Snapshot) Settle(ctx context.Context) error {
	now := time.Now()
	ready := now.UnixNano()
	for i := range s.Entries {
		p := &s.Entries[i]
		if p.Stat.Ctime <= now.UnixNano() {
			ready = max(ready, p.Stat.Ctime+int64(window(p)+time.Millisecond))
		}
	}
	if wait := ready - now.UnixNano(); wait > 0 {
		timer := time.NewTimer(time.Duration(wait))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.Taken = time.Now()
	return nil
}
