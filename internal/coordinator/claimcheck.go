package coordinator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Mode says what claims mean for edits.
type Mode string

// The choices of the configuration's claims key. Advisory keeps agents out of
// what others claimed; enforced also keeps them out of what they did not claim
// themselves.
const (
	Advisory Mode = "advisory"
	Enforced Mode = "enforced"
)

// Edit is a change of lines of base of one file: a zero range is the whole file
// (it is created, deleted, or nobody knows which lines), an empty one a place
// where something is inserted.
type Edit struct {
	Path  superqode.RelPath
	Lines Lines
}

// Verdict is what the claims say to some edits.
type Verdict struct {
	Held      []Lease // claims of others that the edits concern
	Uncovered []Edit  // parts of the edits that no claim of the owner's own covers
}

// Denied reports whether the edits are refused in a mode.
func (v Verdict) Denied(mode Mode) bool {
	return len(v.Held) > 0 || mode == Enforced && len(v.Uncovered) > 0
}

// Check holds edits of an owner against claims.
func Check(leases []Lease, o Owner, edits []Edit) Verdict {
	var v Verdict
	for _, e := range edits {
		left := []Lines{e.Lines}
		for _, l := range leases {
			file := Target{KindFile, string(e.Path), Lines{}}
			switch {
			case l.Owner != o:
				if l.Target.Overlaps(file) && (l.Target.Kind != KindFile || l.Target.Lines.Overlaps(e.Lines)) && !slices.ContainsFunc(v.Held, func(h Lease) bool { return h.Fence == l.Fence && h.Target == l.Target }) {
					v.Held = append(v.Held, l)
				}
			case l.Target.Kind == KindFile && superqode.RelPath(l.Target.Path) == e.Path:
				left = uncovered(left, l.Target.Lines)
			case l.Target.Holds(file):
				left = nil
			}
		}
		for _, lines := range left {
			v.Uncovered = append(v.Uncovered, Edit{e.Path, lines})
		}
	}
	return v
}

// uncovered takes what a claim on l covers out of a list of ranges.
func uncovered(list []Lines, l Lines) (left []Lines) {
	for _, e := range list {
		switch {
		case l.Covers(e):
		case e.Whole() || e.End < e.Start:
			left = append(left, e)
		default:
			left = append(left, e.minus(l)...)
		}
	}
	return left
}

// Reason explains a denial in one sentence, for agents and people.
func (v Verdict) Reason(mode Mode) string {
	var parts []string
	for i, l := range v.Held {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(v.Held)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s is claimed by %s since %s, %s", quoted(l.Target.String()), l.Owner, clock(l.Since), until(l)))
	}
	if len(v.Held) == 0 && mode == Enforced && len(v.Uncovered) > 0 {
		var names []string
		for _, e := range v.Uncovered[:min(len(v.Uncovered), 5)] {
			names = append(names, quoted(e.String()))
		}
		if n := len(v.Uncovered) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		parts = append(parts, "claims are enforced here, and you have none on "+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}

// String writes the edit as the command line takes the claim for it.
func (e Edit) String() string {
	l := e.Lines
	if l.End < l.Start && !l.Whole() { // a claim on either neighbour covers a place
		l = Lines{max(l.Start-1, 1), max(l.Start-1, 1)}
	}
	return Target{KindFile, string(e.Path), l}.String()
}
