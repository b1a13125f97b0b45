package watch

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// index is what is known about the paths: the baseline, and in known what
// differs from it. A zero stamp there means that nothing is at the path.
type index struct {
	known map[string]Stamp
	base  Baseline

	// below looks up a folder in the sorted paths. It sorts them when first
	// asked and keeps them until release: while a tree is being deleted every
	// folder asks.
	sorted []string // paths of known; some may be gone from it since
	later  []string // those that came since
}

// find returns what is known to be at a path.
func (x *index) find(rel string) (Stamp, bool) {
	if s, ok := x.known[rel]; ok {
		return s, s.there()
	}
	if x.base == nil {
		return Stamp{}, false
	}
	return x.base.Find(rel)
}

// there reports whether something is at the path.
func (s Stamp) there() bool { return s.Mode != 0 || s.Ino != 0 }

// learn records what is at a path.
func (x *index) learn(rel string, s Stamp) {
	if _, ok := x.known[rel]; !ok && x.sorted != nil {
		x.later = append(x.later, rel)
	}
	x.known[rel] = s
}

// forget records that nothing is at a path.
func (x *index) forget(rel string) {
	if x.base == nil {
		delete(x.known, rel)
		return
	}
	x.learn(rel, Stamp{})
}

// below calls yield for everything that is known to be below a folder, "" for
// all.
func (x *index) below(rel string, yield func(string, Stamp)) {
	if x.base != nil {
		x.base.Below(rel, func(p string, s Stamp) {
			if _, changed := x.known[p]; !changed {
				yield(p, s)
			}
		})
	}
	if rel == "" {
		for p, s := range maps.All(x.known) {
			if s.there() {
				yield(p, s)
			}
		}
		return
	}
	if x.sorted == nil || len(x.later) > 1000+len(x.sorted)/8 {
		x.sorted, x.later = slices.AppendSeq(make([]string, 0, len(x.known)), maps.Keys(x.known)), nil
		slices.Sort(x.sorted)
	}
	prefix := rel + "/"
	known := func(p string) {
		if s := x.known[p]; s.there() {
			yield(p, s)
		}
	}
	for i := sort.SearchStrings(x.sorted, prefix); i < len(x.sorted) && strings.HasPrefix(x.sorted[i], prefix); i++ {
		known(x.sorted[i])
	}
	for _, p := range x.later {
		if strings.HasPrefix(p, prefix) {
			known(p)
		}
	}
}

// release frees the memory that below has taken.
func (x *index) release() { x.sorted, x.later = nil, nil }
