package watch

import (
	"io/fs"
	"slices"
	"strings"
)

// identity is what a file or folder keeps when it moves.
type identity struct {
	ino         uint64
	kind        fs.FileMode
	size, mtime int64
}

func (s Stamp) identity() identity {
	if s.isDir() {
		return identity{ino: s.Ino, kind: s.Mode.Type()}
	}
	return identity{s.Ino, s.Mode.Type(), s.Size, s.Mtime}
}

// events pairs what is gone with what is new, and sorts all events so that
// replaying them one by one leads to what is there: deletions first, then
// moves, then the rest.
func (b *batch) events() []Event {
	was := make(map[identity]string, len(b.gone))
	for p, f := range b.gone {
		was[f.stamp.identity()] = p
	}
	var moves, rest []Event
	for p, f := range b.changed {
		rest = append(rest, Event{Type: Modified, Path: p, At: f.first})
	}
	for p, f := range b.fresh {
		ev := Event{Type: Created, Path: p, Dir: f.stamp.isDir(), At: f.first}
		old, ok := was[f.stamp.identity()]
		g, still := b.gone[old]
		if !ok || !still || old == p {
			rest = append(rest, ev)
			continue
		}
		ev.Type, ev.Old = Moved, old
		if g.first.Before(ev.At) {
			ev.At = g.first
		}
		delete(b.gone, old)
		moves = append(moves, ev)
	}
	var out []Event
	for p, f := range b.gone {
		out = append(out, Event{Type: Deleted, Path: p, Dir: f.stamp.isDir(), At: f.first})
	}
	byTime(out)
	byTime(moves)
	moved, broken := chain(moves)
	rest = append(rest, broken...)
	byTime(rest)
	return slices.Concat(out, moved, rest)
}

func byTime(list []Event) {
	slices.SortFunc(list, func(x, y Event) int {
		if c := x.At.Compare(y.At); c != 0 {
			return c
		}
		return strings.Compare(x.Path, y.Path)
	})
}

// chain orders moves so that none goes to a path that another one has yet to
// leave. If they form a circle, one of them becomes a deletion, and a creation
// in rest.
func chain(moves []Event) (out, rest []Event) {
	leaving := make(map[string]bool, len(moves))
	for _, m := range moves {
		leaving[m.Old] = true
	}
	for len(moves) > 0 {
		var later []Event
		for _, m := range moves {
			if leaving[m.Path] {
				later = append(later, m)
				continue
			}
			delete(leaving, m.Old)
			out = append(out, m)
		}
		if len(later) == len(moves) {
			m := later[0]
			later = later[1:]
			delete(leaving, m.Old)
			out = append(out, Event{Type: Deleted, Path: m.Old, Dir: m.Dir, At: m.At})
			rest = append(rest, Event{Type: Created, Path: m.Path, Dir: m.Dir, At: m.At})
		}
		moves = later
	}
	return out, rest
}
