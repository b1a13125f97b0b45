package coordinator

import (
	"slices"
	"sort"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// LineMap says where the lines of one state of a file are in another one. Both
// states are told apart as base, which claims speak of, and now.
type LineMap struct {
	changes []change // in order, none touching the next
}

// change is a run of lines of base that became a run of lines of now; either may
// have none. base and now are the first line's number, or where it would be.
type change struct{ base, baseN, now, nowN int }

// NewLineMap compares two states of a file line by line. Lines that occur once
// in both are what it holds on to; between them it looks for the shortest way.
func NewLineMap(base, now []byte) LineMap {
	x, y := splitLines(base), splitLines(now)
	var m LineMap
	fromX, fromY := 0, 0
	for _, p := range append(anchors(x, y), [2]int{len(x), len(y)}) {
		for _, d := range lcs.DiffLines(x[fromX:p[0]], y[fromY:p[1]]) {
			m.add(change{fromX + d.Start + 1, d.End - d.Start, fromY + d.ReplStart + 1, d.ReplEnd - d.ReplStart})
		}
		fromX, fromY = p[0], p[1]
	}
	return m
}

// add appends a change, which joins the last one where nothing is between them.
func (m *LineMap) add(c change) {
	if n := len(m.changes) - 1; n >= 0 {
		if last := &m.changes[n]; last.base+last.baseN == c.base && last.now+last.nowN == c.now {
			last.baseN, last.nowN = last.baseN+c.baseN, last.nowN+c.nowN
			return
		}
	}
	m.changes = append(m.changes, c)
}

func splitLines(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// anchors returns pairs of equal lines, each of which is the only one of its
// text in both states: the longest list that is in order in both.
func anchors(x, y []string) [][2]int {
	type seen struct{ inX, inY, x, y int }
	where := make(map[string]*seen, len(x))
	for i, l := range x {
		s := where[l]
		if s == nil {
			s = &seen{}
			where[l] = s
		}
		s.inX, s.x = s.inX+1, i
	}
	var pairs [][2]int // in the order of y
	for j, l := range y {
		if s := where[l]; s != nil {
			s.inY, s.y = s.inY+1, j
		}
	}
	for j, l := range y {
		if s := where[l]; s != nil && s.inX == 1 && s.inY == 1 {
			pairs = append(pairs, [2]int{s.x, j})
		}
	}
	return longestRise(pairs)
}

// longestRise returns a longest part of the list in which the first numbers rise.
func longestRise(pairs [][2]int) [][2]int {
	var ends []int // ends[k]: the pair that ends the best rise of k+1 pairs
	before := make([]int, len(pairs))
	for i, p := range pairs {
		k := sort.Search(len(ends), func(k int) bool { return pairs[ends[k]][0] >= p[0] })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	var out [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			out = append(out, pairs[i])
		}
	}
	slices.Reverse(out)
	return out
}

// ToBase returns the lines of base that a range of lines of now stands for.
// Lines that were changed stand for all lines that they were made of, and lines
// that were inserted for the place before which they were.
func (m LineMap) ToBase(now Lines) Lines {
	switch {
	case now.Whole():
		return now
	case now.End >= now.Start:
		return Lines{m.line(now.Start).Start, m.line(now.End).End}
	}
	// An insertion before line now.Start. Inside of a changed run it changes the run.
	here := m.line(now.Start)
	if now.Start > 1 && m.line(now.Start-1) == here {
		return here
	}
	return Lines{here.Start, here.Start - 1}
}

// line translates one line of now into the lines of base that it stands for.
func (m LineMap) line(n int) Lines {
	shift := 0
	for _, c := range m.changes {
		if n < c.now {
			break
		}
		if n < c.now+c.nowN {
			return Lines{c.base, c.base + c.baseN - 1}
		}
		shift = c.base + c.baseN - c.now - c.nowN
	}
	return Lines{n + shift, n + shift}
}

// toBase turns lines of one state of a file into those of its base.
func toBase(base, now []byte, lines []Lines) []Lines {
	m := NewLineMap(base, now)
	out := make([]Lines, len(lines))
	for i, l := range lines {
		out[i] = m.ToBase(l)
	}
	return out
}

// Changed returns the lines of base that the change from base to now concerns,
// insertions as places.
func (m LineMap) Changed() []Lines {
	var out []Lines
	for _, c := range m.changes {
		out = append(out, Lines{c.base, c.base + c.baseN - 1})
	}
	return out
}
