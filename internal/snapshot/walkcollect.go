package snapshot

import (
	"slices"
	"strings"
)

// collect returns all entries in the order of their paths.
func (w *walker) collect(top *walkNode) []Entry {
	fresh := top.collect(make([]Entry, 0, w.slots.Load()))
	if w.prev == nil {
		return fresh
	}
	out := slices.DeleteFunc(w.out, func(e Entry) bool { return e.Kind == 0 })
	if len(fresh) == 0 {
		return out
	}
	return mergeEntries(out, fresh)
}

// mergeEntries merges two sorted lists without a path in common, in a's memory
// as far as it reaches: from the end, so that nothing is overwritten too early.
func mergeEntries(a, b []Entry) []Entry {
	i, k := len(a), len(b)
	a = slices.Grow(a, k)[:i+k]
	for k > 0 {
		if i > 0 && a[i-1].Path > b[k-1].Path {
			a[i+k-1] = a[i-1]
			i--
		} else {
			a[i+k-1] = b[k-1]
			k--
		}
	}
	return a
}

// collect appends the fresh entries of n and all below it. What lies in a
// directory "a" has its place after "a-b" and before "a0", because of the slash,
// so a directory's contents are merged in by its name with a slash.
func (n *walkNode) collect(list []Entry) []Entry {
	if !slices.IsSortedFunc(n.subs, bySlash) {
		slices.SortFunc(n.subs, bySlash)
	}
	i := 0
	for _, s := range n.subs {
		for ; i < len(n.fresh) && !beforePath(s.path, n.fresh[i].Path); i++ {
			if n.fresh[i].Kind != 0 {
				list = append(list, n.fresh[i])
			}
		}
		list = s.collect(list)
	}
	for ; i < len(n.fresh); i++ {
		if n.fresh[i].Kind != 0 {
			list = append(list, n.fresh[i])
		}
	}
	n.fresh, n.subs = nil, nil
	return list
}

// beforePath reports whether dir with a slash at its end sorts before path.
func beforePath(dir, path string) bool {
	n := min(len(dir), len(path))
	if dir[:n] != path[:n] {
		return dir[:n] < path[:n]
	}
	return len(path) > len(dir) && '/' < path[len(dir)]
}

func bySlash(a, b *walkNode) int {
	n := min(len(a.path), len(b.path))
	if c := strings.Compare(a.path[:n], b.path[:n]); c != 0 {
		return c
	}
	switch {
	case len(a.path) < len(b.path):
		return int('/') - int(b.path[n])
	case len(a.path) > len(b.path):
		return int(a.path[n]) - int('/')
	}
	return 0
}
