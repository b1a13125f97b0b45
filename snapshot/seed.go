package snapshot

import (
	"hash/maphash"
	"time"

	"github.com/seed-2d964004/superqode/internal/git"
)

// IndexSeed answers content ids from git's index. It knows the files that the
// index vouches for: stage 0, not intent-to-add, assume-valid or skip-worktree,
// with the size, inode, owner and times that the file has now, both times a tick
// before the index was written. Links are left to the scan, which reads them
// anyway.
//
// An object's id is that of the file's raw bytes only where no text, eol, crlf,
// ident, filter or working-tree-encoding attribute and no core.autocrlf applies;
// raw must tell so for each path.
type IndexSeed struct {
	index  *git.Index
	raw    func(path string) bool
	cutoff int64
	seed   maphash.Seed
	slots  []uint32 // open addressing: position in the index + 1
}

// NewIndexSeed prepares x for lookups in any order. raw is called from several
// goroutines.
func NewIndexSeed(x *git.Index, raw func(path string) bool) *IndexSeed {
	s := &IndexSeed{index: x, raw: raw, cutoff: x.ModTime.Add(-racyWindow).UnixNano(), seed: maphash.MakeSeed()}
	if x.ModTime.Nanosecond() == 0 {
		s.cutoff = x.ModTime.Add(-coarseWindow).UnixNano()
	}
	size := 16
	for size < 2*x.Len() {
		size *= 2
	}
	s.slots = make([]uint32, size)
	for i := range x.Len() {
		k := s.slot(x.Path(i))
		for s.slots[k] != 0 {
			k = (k + 1) % len(s.slots)
		}
		s.slots[k] = uint32(i) + 1
	}
	return s
}

func (s *IndexSeed) slot(path string) int { return int(maphash.String(s.seed, path) % uint64(len(s.slots))) }

// Lookup answers from the index.
func (s *IndexSeed) Lookup(path string, e *Entry) (ID, bool) {
	if e.Kind != File || max(e.Stat.Mtime, e.Stat.Ctime) >= s.cutoff {
		return ID{}, false
	}
	for k := s.slot(path); s.slots[k] != 0; k = (k + 1) % len(s.slots) {
		i := int(s.slots[k]) - 1
		if s.index.Path(i) != path {
			continue
		}
		x := s.index.At(i)
		if x.Stage != 0 || x.IntentToAdd || x.AssumeValid || x.SkipWorktree || x.Mode&0o170000 != 0o100000 || !indexKnows(&x.Stat, e) || !s.raw(path) {
			return ID{}, false
		}
		return IDFrom([]byte(x.OID)), true
	}
	return ID{}, false
}

// indexKnows compares what an index keeps of a file's stat data, in 32 bits
// each. The device is left out, as git does: it may change with each boot.
func indexKnows(x *git.IndexStat, e *Entry) bool {
	st := &e.Stat
	return x.Size == uint32(e.Size) && x.Ino == uint32(st.Ino) && x.UID == st.UID && x.GID == st.GID &&
		sameTime(x.MtimeSec, x.MtimeNsec, st.Mtime) && sameTime(x.CtimeSec, x.CtimeNsec, st.Ctime)
}

func sameTime(sec, nsec uint32, ns int64) bool {
	t := time.Unix(0, ns)
	return sec == uint32(t.Unix()) && nsec == uint32(t.Nanosecond())
}
