package snapshot

import (
	"context"
	"sort"
	"time"
)

// racyWindow is how long before a snapshot was taken a file must have changed
// last for its stat data to prove its content. A file can change twice within
// one step of the clock that stamps it and show the same times: the kernel's
// steps are at most 10 ms long, and the other 10 are for a clock that is set.
const racyWindow = 20 * time.Millisecond

// coarseWindow is the same for file systems that keep whole seconds (FAT: two).
const coarseWindow = 2 * time.Second

// sameState reports whether b's stat data say that it is a in the same state.
// Whether they can be trusted is another question: see cutoff.
func (e *Entry) sameState(b *Entry) bool {
	return e.Kind == b.Kind && e.Size == b.Size && e.Stat.Mtime == b.Stat.Mtime && e.Stat.Ctime == b.Stat.Ctime &&
		e.Stat.Ino == b.Stat.Ino && e.Stat.Dev == b.Stat.Dev
}

// cutoff is the time, in nanoseconds, from which on an entry's times do not
// prove that the file was not changed again after it had been looked at.
func (s *Snapshot) cutoff() int64 {
	window := racyWindow
	if s.wholeSeconds() {
		window = coarseWindow
	}
	return s.Taken.Add(-window).UnixNano()
}

// wholeSeconds reports whether all change times of s are whole seconds. A clock
// with finer steps gives that to one file, not to many.
func (s *Snapshot) wholeSeconds() bool {
	for i := range s.Entries {
		if s.Entries[i].Stat.Ctime%int64(time.Second) != 0 {
			return false
		}
	}
	return true
}

// Known returns s as a cache: it answers the content id of a file that has the
// device, inode, size, mtime and ctime (both in nanoseconds) that s recorded, if
// both times lie far enough before the snapshot was taken.
func (s *Snapshot) Known() Known { return &snapshotKnown{s, s.cutoff()} }

type snapshotKnown struct {
	s      *Snapshot
	cutoff int64
}

// Lookup answers from the snapshot.
func (k *snapshotKnown) Lookup(path string, e *Entry) (ID, bool) {
	list := k.s.Entries
	i := sort.Search(len(list), func(i int) bool { return list[i].Path >= path })
	if i == len(list) || list[i].Path != path {
		return ID{}, false
	}
	p := &list[i]
	if p.ID.IsZero() || !p.sameState(e) || p.Stat.Mtime >= k.cutoff || p.Stat.Ctime >= k.cutoff {
		return ID{}, false
	}
	return p.ID, true
}

// Settle makes a snapshot of a directory that nobody else has written to since
// useful as a cache at once: it waits until the last change of any entry lies
// far enough in the past (no longer than racyWindow, two seconds where the file
// system keeps whole seconds) and sets Taken to now. A program that is started
// afterwards can then change no file unseen. Without it every file that a copy
// has just made counts as changed too lately and is read again by each scan.
func (s *Snapshot) Settle(ctx context.Context) error {
	now := time.Now()
	var last int64
	for i := range s.Entries {
		if t := s.Entries[i].Stat.Ctime; t > last && t <= now.UnixNano() {
			last = t
		}
	}
	window := racyWindow
	if s.wholeSeconds() {
		window = coarseWindow
	}
	if wait := time.Unix(0, last).Add(window + time.Millisecond).Sub(now); len(s.Entries) > 0 && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	s.Taken = time.Now()
	return nil
}
