package snapshot

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// ByPath is the order of entries in a snapshot: by the bytes of their paths.
func ByPath(a, b Entry) int { return cmp.Compare(a.Path, b.Path) }

// SortProblems sorts problems by the bytes of their paths.
func SortProblems(list []Problem) {
	slices.SortFunc(list, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
}

// Join walks two sorted lists side by side. It yields each path once: the entries
// at it in a and in b, nil for a list that does not have it. They are the lists'
// own and may be changed, but for their paths.
func Join(a, b []Entry) iter.Seq2[*Entry, *Entry] {
	return func(yield func(*Entry, *Entry) bool) {
		for i, k := 0, 0; i < len(a) || k < len(b); {
			order := 0
			switch {
			case k == len(b):
				order = -1
			case i == len(a):
				order = 1
			default:
				order = cmp.Compare(a[i].Path, b[k].Path)
			}
			var x, y *Entry
			if order <= 0 {
				x = &a[i]
				i++
			}
			if order >= 0 {
				y = &b[k]
				k++
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// search returns the position of path in s, or where it would be.
func (s *Snapshot) search(path superqode.RelPath) (at int, found bool) {
	return slices.BinarySearchFunc(s.Entries, path, func(e Entry, p superqode.RelPath) int { return cmp.Compare(e.Path, p) })
}

// Find returns the entry at path, or nil.
func (s *Snapshot) Find(path superqode.RelPath) *Entry {
	if at, found := s.search(path); found {
		return &s.Entries[at]
	}
	return nil
}

// Below returns the entries below a folder, which are the snapshot's own; ""
// is the root.
func (s *Snapshot) Below(dir superqode.RelPath) []Entry {
	if dir == "" {
		return s.Entries
	}
	from, _ := s.search(dir + "/")
	to, _ := s.search(dir + "0") // the byte after the slash
	return s.Entries[from:to]
}

// With returns a snapshot of the same directory and moment that holds other
// entries.
func (s *Snapshot) With(entries []Entry) *Snapshot {
	return &Snapshot{Root: s.Root, Format: s.Format, Taken: s.Taken, Entries: entries}
}

// WithOthers returns s with the entries of from at some paths, or without them where from
// has none.
func (s *Snapshot) WithOthers(paths []superqode.RelPath, from *Snapshot) *Snapshot {
	wanted := make(map[superqode.RelPath]bool, len(paths))
	for _, p := range paths {
		wanted[p] = true
	}
	out := *s
	out.File = ""
	out.Entries = make([]Entry, 0, len(s.Entries)+len(paths))
	for _, e := range s.Entries {
		if !wanted[e.Path] {
			out.Entries = append(out.Entries, e)
		}
	}
	for _, p := range paths {
		if e := from.Find(p); e != nil {
			out.Entries = append(out.Entries, *e)
		}
	}
	slices.SortFunc(out.Entries, ByPath)
	return &out
}

// Only returns a snapshot of the entries that keep accepts: s itself where that is all.
func (s *Snapshot) Only(keep func(e *Entry) bool) *Snapshot {
	same := 0
	for same < len(s.Entries) && keep(&s.Entries[same]) {
		same++
	}
	if same == len(s.Entries) {
		return s
	}
	out := s.With(slices.Clone(s.Entries[:same]))
	for i := same + 1; i < len(s.Entries); i++ {
		if keep(&s.Entries[i]) {
			out.Entries = append(out.Entries, s.Entries[i])
		}
	}
	return out
}

// Same reports whether two entries have the same kind, permission bits and
// contents. The bits of links do not count.
func (e *Entry) Same(o *Entry) bool {
	return (e.Perm == o.Perm || e.Kind == Link) && e.SameContent(o)
}

// SameContent reports whether two entries have the same kind and hold the same.
// Files are compared by their content ids and, where one is not known, by
// SameState.
func (e *Entry) SameContent(o *Entry) bool {
	switch {
	case e.Kind != o.Kind:
		return false
	case e.Kind == Link, e.Kind == Other:
		return e.Link == o.Link
	case e.Kind != File:
		return true
	case e.ID.IsZero() || o.ID.IsZero():
		return e.SameState(o)
	}
	return e.ID == o.ID
}

// SameState reports whether the stat data say that both are one file in one
// state, but for its permission bits and owner. Whether that proves its contents
// is another question: see Known.
func (e *Entry) SameState(o *Entry) bool { return e.SameFile(o) && e.Stat.Ctime == o.Stat.Ctime }

// SameFile is SameState for a file that may have been renamed, linked or given
// other permission bits or another owner meanwhile: those change the ctime.
func (e *Entry) SameFile(o *Entry) bool {
	return e.Kind == o.Kind && e.Size == o.Size && e.Stat.Mtime == o.Stat.Mtime && e.Stat.Ino == o.Stat.Ino && e.Stat.Dev == o.Stat.Dev
}

// LooksCopied reports whether one may be a copy of the other to which nobody has
// written since: kind, size, link and, of a file, mtime are the same.
func (e *Entry) LooksCopied(o *Entry) bool {
	return e.Kind == o.Kind && e.Size == o.Size && e.Link == o.Link && (e.Kind != File || e.Stat.Mtime == o.Stat.Mtime)
}
