// Package coordinator lets several agents work on one repository at once. A
// claim is an agent's lease on a range of a file's lines: while it lasts no
// other agent gets a claim that overlaps it.
//
// Claims are advice between programs that ask: they lock nothing in the file
// system. They are enforced where something refuses: an agent's pre-edit hook (claim
// check) and, with `claims: enforced`, the session that applies or merges.
//
// The rules of the claims, in the order in which they count:
//
//   - Two claims of different owners never overlap.
//   - Requests that wait are served in the order of asking. A request that overlaps what an
//     earlier one waits for waits behind it; one that overlaps nobody's is served
//     at once.
//   - An owner's own claims are no obstacle to it. Asking again for lines that
//     overlap or touch its own range makes one range of both.
//   - A claim ends with its release, when its time is up, or when its holder is
//     dead, whichever comes first.
//   - Owners that wait for one another in a circle would wait for ever: the
//     request that closes the circle is refused.
//   - Each grant has a fencing number that no earlier grant had.
//
// Lines are those of the session's base, 1-based and inclusive; LineMap turns
// the lines of a file as it is now into them.
package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

// Owner is who holds a claim: an agent, in a session or, with a zero session,
// outside of any. The same name in two sessions is two owners.
type Owner struct {
	Session superqode.SessionID `json:"session_id"`
	Agent   superqode.AgentID   `json:"agent_id"`
}

// String names the owner for people.
func (o Owner) String() string {
	if o.Session.IsZero() || o.Agent.String() == o.Session.String() {
		return o.Agent.String()
	}
	return o.Agent.String() + " (session " + o.Session.String() + ")"
}

// Holder is the process whose death ends a claim: the keeper of a flock, or a
// process by its number and start time. The zero Holder never dies.
type Holder struct {
	Lock  superqode.HostPath `json:"lock,omitempty"`
	PID   int                `json:"pid,omitempty"`
	Start uint64             `json:"start,omitempty"` // as proctable.Read gives it
}

// Lease is one granted claim.
type Lease struct {
	Fence  uint64 `json:"fence"`
	Target Target `json:"target"`
	Owner
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // zero: until it is released or its holder dies
	Holder Holder    `json:"holder,omitzero"`

	Boot string        `json:"boot,omitempty"`     // the start of the machine that Up counts from
	Up   time.Duration `json:"up_until,omitempty"` // Until on a clock that nobody sets
}

// Request asks for claims: all of Targets or none.
type Request struct {
	Owner
	Targets []Target      `json:"targets"`
	TTL     time.Duration `json:"ttl,omitempty"` // 0: no end
	Holder  Holder        `json:"holder,omitzero"`
}

// Waiter is a request in the queue. Granted holds the fencing numbers of what it
// was given and has not fetched yet.
type Waiter struct {
	Ticket uint64 `json:"ticket"`
	Request
	Since   time.Time `json:"since"`
	Granted []uint64  `json:"granted,omitempty"`
}

// moment is a point in time on two clocks: the wall's, which people and time
// servers set, and the machine's own, which only runs.
type moment struct {
	wall time.Time
	boot string
	up   time.Duration
}

func (l Lease) expired(now moment) bool {
	switch {
	case l.Until.IsZero():
		return false
	case l.Boot != "" && l.Boot == now.boot:
		return now.up >= l.Up
	}
	return !now.wall.Before(l.Until)
}

// Lines is a range of lines, 1-based and inclusive. The zero value is the whole
// file. End == Start-1 is no line: the place before Start, where something was
// inserted.
type Lines struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Whole reports whether l is the whole file.
func (l Lines) Whole() bool { return l == Lines{} }

// Overlaps reports whether a change of the lines m concerns a claim on l. An
// insertion concerns the claim when it lies between two of its lines.
func (l Lines) Overlaps(m Lines) bool {
	if l.Whole() || m.Whole() {
		return true
	}
	if m.End < m.Start {
		return l.Start < m.Start && m.Start <= l.End
	}
	return l.Start <= m.End && m.Start <= l.End
}

// Covers reports whether a claim on l allows a change of the lines m. It allows
// insertions at both its ends too.
func (l Lines) Covers(m Lines) bool {
	switch {
	case l.Whole():
		return true
	case m.Whole():
		return false
	case m.End < m.Start:
		return l.Start <= m.Start && m.Start <= l.End+1
	}
	return l.Start <= m.Start && m.End <= l.End
}

// touches reports whether two ranges overlap or follow one another.
func (l Lines) touches(m Lines) bool {
	return l.Whole() || m.Whole() || l.Start <= m.End+1 && m.Start <= l.End+1
}

// union is the range from the first to the last line of both.
func (l Lines) union(m Lines) Lines {
	if l.Whole() || m.Whole() {
		return Lines{}
	}
	return Lines{min(l.Start, m.Start), max(l.End, m.End)}
}

// minus returns what is left of l without m, in up to two ranges. Nothing but
// the whole can be taken out of a whole file, whose last line is not known.
func (l Lines) minus(m Lines) []Lines {
	switch {
	case m.Whole():
		return nil
	case l.Whole(), !l.Overlaps(m):
		return []Lines{l}
	}
	var left []Lines
	if l.Start < m.Start {
		left = append(left, Lines{l.Start, m.Start - 1})
	}
	if m.End < l.End {
		left = append(left, Lines{m.End + 1, l.End})
	}
	return left
}

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
				told := slices.ContainsFunc(v.Held,
					func(h Lease) bool { return h.Fence == l.Fence && h.Target == l.Target })
				if !told && l.Target.Overlaps(file) && (l.Target.Kind != KindFile || l.Target.Lines.Overlaps(e.Lines)) {
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
		parts = append(parts, fmt.Sprintf("%s is claimed by %s since %s, %s",
			quoted(l.Target.String()), l.Owner, clock(l.Since), until(l)))
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
