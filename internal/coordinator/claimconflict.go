package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

// Edge says that one owner waits for another, and on account of what.
type Edge struct {
	From   Owner    `json:"from"`
	Wants  []Target `json:"wants"`
	To     Owner    `json:"to"`
	Target Target   `json:"target"`
	Queued bool     `json:"queued"` // the other one has no claim yet, and asked earlier
}

// circle returns the circle of waiting owners that a request would close, which
// begins and ends with its owner, or nil.
func (b *book) circle(r *Request) []Edge {
	seen := map[Owner]bool{}
	var from func(o Owner) []Edge
	from = func(o Owner) []Edge {
		if seen[o] {
			return nil
		}
		seen[o] = true
		for _, e := range b.edges(o, r) {
			if e.To == r.Owner {
				return []Edge{e}
			}
			if rest := from(e.To); rest != nil {
				return append([]Edge{e}, rest...)
			}
		}
		return nil
	}
	return from(r.Owner)
}

// edges lists whom an owner waits for, r being the newest request.
func (b *book) edges(o Owner, r *Request) []Edge {
	var out []Edge
	add := func(q *Request, ticket uint64) {
		held, ahead := b.obstacles(q, ticket)
		for _, l := range held {
			out = append(out, Edge{From: o, Wants: q.Targets, To: l.Owner, Target: l.Target})
		}
		for _, w := range ahead {
			at := slices.IndexFunc(w.Targets, q.overlaps)
			out = append(out, Edge{From: o, Wants: q.Targets, To: w.Owner, Target: w.Targets[at], Queued: true})
		}
	}
	for i := range b.Waiters {
		if w := &b.Waiters[i]; w.Owner == o && w.pending() {
			add(&w.Request, w.Ticket)
		}
	}
	if o == r.Owner {
		add(r, 0)
	}
	return out
}

// Conflict is why a request was not granted.
type Conflict struct {
	Wanted []Target      `json:"-"`
	Owner  Owner         `json:"-"`
	Held   []Lease       `json:"held"`   // claims of others
	Ahead  []Waiter      `json:"ahead"`  // who asked earlier for the same
	Circle []Edge        `json:"circle"` // owners that would wait for one another
	Waited time.Duration `json:"-"`      // before the time was up
}

// ConflictError says who holds what was asked for. It wraps
// superqode.ErrConflict.
type ConflictError struct{ Conflict }

// Unwrap returns superqode.ErrConflict.
func (e *ConflictError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths of the claims in the way.
func (e *ConflictError) ErrorPaths() []string {
	var out []string
	for _, l := range e.Held {
		out = append(out, l.Target.Path)
	}
	for _, w := range e.Ahead {
		for _, t := range w.Targets {
			out = append(out, t.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Error names the holders, what they hold, since when and until when.
func (e *ConflictError) Error() string {
	wanted := targetList(e.Wanted)
	if len(e.Circle) > 0 {
		return fmt.Sprintf("%s: waiting would never end: %s", wanted, circleText(e.Circle))
	}
	var b strings.Builder
	b.WriteString(wanted)
	const most = 5
	for i, l := range e.Held[:min(len(e.Held), most)] {
		if i > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " is claimed by %s: %s since %s, %s", l.Owner, quoted(l.Target.String()), clock(l.Since), until(l))
	}
	if n := len(e.Held) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	if len(e.Held) == 0 && len(e.Ahead) > 0 {
		w := e.Ahead[0]
		fmt.Fprintf(&b, " is waited for by %s, who asked earlier (%s since %s)", w.Owner, targetList(w.Targets), clock(w.Since))
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, "; waited %s", e.Waited.Round(time.Millisecond))
	}
	return b.String()
}

func circleText(circle []Edge) string {
	var parts []string
	for _, e := range circle {
		how := "held by"
		if e.Queued {
			how = "asked for earlier by"
		}
		parts = append(parts, fmt.Sprintf("%s waits for %s %s %s", e.From, quoted(e.Target.String()), how, e.To))
	}
	return strings.Join(parts, ", ")
}

func targetList(targets []Target) string {
	var out []string
	for _, t := range targets {
		out = append(out, quoted(t.String()))
	}
	return strings.Join(out, ", ")
}

// quoted puts a name into quotes where it could be misread in a sentence.
func quoted(s string) string {
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` || s == "" || strings.ContainsAny(s, " ,;") {
		return q
	}
	return s
}

func until(l Lease) string {
	switch {
	case !l.Until.IsZero():
		return "until " + clock(l.Until)
	case l.Holder == Holder{}:
		return "until it is released"
	case l.Holder.PID != 0:
		return fmt.Sprintf("until it is released or process %d ends", l.Holder.PID)
	}
	return "until it is released or the agent's run ends"
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }
