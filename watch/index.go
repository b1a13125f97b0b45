package watch

import (
	"maps"
	"strings"
)

// index is what is known of the paths: the baseline, and in known what became
// different from it. A zero stamp there means that nothing is at the path.
type index struct {
	known map[string]Stamp
	base  Baseline
}

// find returns what is known to be at a path.
func (x *index) find(rel string) (Stamp, bool) {
	if s, ok := x.known[rel]; ok {
		return s, s.Mode != 0 || s.Ino != 0
	}
	if x.base == nil {
		return Stamp{}, false
	}
	return x.base.Find(rel)
}

// forget notes that nothing is at a path.
func (x *index) forget(rel string) {
	if x.base == nil {
		delete(x.known, rel)
		return
	}
	x.known[rel] = Stamp{}
}

// below calls yield for all that is known to be below a folder, "" for
// everything.
func (x *index) below(rel string, yield func(string, Stamp)) {
	prefix := rel + "/"
	if rel == "" {
		prefix = ""
	}
	if x.base != nil {
		x.base.Below(rel, func(p string, s Stamp) {
			if _, changed := x.known[p]; !changed {
				yield(p, s)
			}
		})
	}
	for p, s := range maps.All(x.known) {
		if strings.HasPrefix(p, prefix) && (s.Mode != 0 || s.Ino != 0) {
			yield(p, s)
		}
	}
}
