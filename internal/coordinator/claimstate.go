package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

// book is all claims of one origin: what is granted, and which requests wait, in the order
// of asking. Its methods decide and touch nothing else; claimtable.go acts.
type book struct {
	Fence   uint64   `json:"fence"`  // of the latest grant
	Ticket  uint64   `json:"ticket"` // of the latest waiter
	Leases  []Lease  `json:"leases"`
	Waiters []Waiter `json:"waiters"`

	served []uint64 // tickets that promote served since the book was read
}

// What one origin's book holds at most. More is a program out of control.
const (
	maxLeases  = 20_000
	maxWaiters = 2_000
)

// pending reports whether the waiter has been given nothing yet.
func (w *Waiter) pending() bool { return len(w.Granted) == 0 }

func (r *Request) overlaps(t Target) bool {
	return slices.ContainsFunc(r.Targets, t.Overlaps)
}

func (r *Request) meets(o *Request) bool {
	return slices.ContainsFunc(o.Targets, r.overlaps)
}

// obstacles are what keeps a request from being granted: claims of others, and
// others who asked earlier for what overlaps it. before is the request's ticket,
// or 0 for one that is not in the queue.
func (b *book) obstacles(r *Request, before uint64) (held []Lease, ahead []Waiter) {
	for _, l := range b.Leases {
		if l.Owner != r.Owner && r.overlaps(l.Target) {
			held = append(held, l)
		}
	}
	if b.renews(r) {
		return held, nil
	}
	for i := range b.Waiters {
		w := &b.Waiters[i]
		if w.Ticket != before && (before == 0 || w.Ticket < before) && w.pending() && w.Owner != r.Owner &&
			r.meets(&w.Request) {
			ahead = append(ahead, *w)
		}
	}
	return held, ahead
}

// renews reports whether a request is for nothing but what its owner holds. Who
// waits for that waits all the same.
func (b *book) renews(r *Request) bool {
	for _, t := range r.Targets {
		if !slices.ContainsFunc(b.Leases, func(l Lease) bool { return l.Owner == r.Owner && l.Target.Holds(t) }) {
			return false
		}
	}
	return true
}

// request decides on a request at once: the grants, or what is in the way.
func (b *book) request(r *Request, now moment) ([]Lease, *Conflict, error) {
	if c := b.conflict(r, 0); len(c.Held)+len(c.Ahead) > 0 {
		return nil, c, nil
	}
	if len(b.Leases)+len(r.Targets) > maxLeases {
		return nil, nil, superqode.Errorf(superqode.ErrLocked, "this origin has %d claims already", len(b.Leases))
	}
	return b.grant(r, now), nil, nil
}

// enqueue puts a request that cannot be granted at the end of the queue, or
// returns the circle of waiting owners that it would close. Only a request that
// comes can close one: a grant makes those who waited behind the request wait
// for the claim of the same owner, and everything else takes waiting away.
func (b *book) enqueue(r Request, now moment) (ticket uint64, circle []Edge, err error) {
	if circle := b.circle(&r); circle != nil {
		return 0, circle, nil
	}
	if len(b.Waiters) >= maxWaiters {
		return 0, nil, superqode.Errorf(superqode.ErrLocked, "%d requests wait for claims of this origin already",
			len(b.Waiters))
	}
	b.Ticket++
	b.Waiters = append(b.Waiters, Waiter{Ticket: b.Ticket, Request: r, Since: now.wall})
	return b.Ticket, nil, nil
}

// grant makes the claims of a request, each with a new fencing number.
func (b *book) grant(r *Request, now moment) []Lease {
	var out []Lease
	for _, t := range r.Targets {
		l := Lease{Target: t, Owner: r.Owner, Since: now.wall, Holder: r.Holder}
		if r.TTL > 0 {
			l.Until, l.Boot, l.Up = now.wall.Add(r.TTL), now.boot, now.up+r.TTL
		}
		out = append(out, b.add(l))
	}
	return out
}

// add puts a claim into the book and makes one of it and of those of its owner
// and holder that it overlaps or continues. None of them ends earlier for it.
func (b *book) add(l Lease) Lease {
	for again := true; again; {
		again = false
		b.Leases = slices.DeleteFunc(b.Leases, func(old Lease) bool {
			same := old.Owner == l.Owner && old.Holder == l.Holder && old.Target.Kind == l.Target.Kind &&
				old.Target.Path == l.Target.Path
			if !same || !old.Target.Lines.touches(l.Target.Lines) {
				return false
			}
			l.Target.Lines = old.Target.Lines.union(l.Target.Lines)
			l.Since = earlier(old.Since, l.Since)
			if old.Until.IsZero() || !l.Until.IsZero() && old.outlives(l) {
				l.Until, l.Boot, l.Up = old.Until, old.Boot, old.Up
			}
			again = true // what was passed may touch the union
			return true
		})
	}
	b.Fence++
	l.Fence = b.Fence
	b.Leases = append(b.Leases, l)
	return l
}

func (l Lease) outlives(m Lease) bool {
	if l.Boot == m.Boot {
		return l.Up > m.Up
	}
	return l.Until.After(m.Until)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// promote grants what the head of the queue, and whoever overlaps nobody before
// it, can be given.
func (b *book) promote(now moment) {
	for i := range b.Waiters {
		w := &b.Waiters[i]
		if !w.pending() {
			continue
		}
		if held, ahead := b.obstacles(&w.Request, w.Ticket); len(held)+len(ahead) > 0 {
			continue
		}
		for _, l := range b.grant(&w.Request, now) {
			w.Granted = append(w.Granted, l.Fence)
		}
		b.served = append(b.served, w.Ticket)
	}
}

// leave takes a waiter out of the queue. Claims that it was given stay when keep
// is set; else they go with it, for nobody knows of them.
func (b *book) leave(ticket uint64, keep bool) (w Waiter, was bool) {
	i := b.waiter(ticket)
	if i < 0 {
		return w, false
	}
	w = b.Waiters[i]
	b.Waiters = slices.Delete(b.Waiters, i, i+1)
	if !keep {
		b.Leases = slices.DeleteFunc(b.Leases, func(l Lease) bool { return slices.Contains(w.Granted, l.Fence) })
	}
	return w, true
}

// release ends what an owner holds of the targets and returns it. A part of a
// range is taken out of it.
func (b *book) release(o Owner, targets []Target) (ended []Lease) {
	var kept []Lease
	for _, l := range b.Leases {
		left := []Lines{l.Target.Lines}
		gone := false
		for _, t := range targets {
			switch {
			case l.Owner != o:
			case t.Kind == KindFile && l.Target.Kind == KindFile && t.Path == l.Target.Path:
				var rest []Lines
				for _, part := range left {
					rest = append(rest, part.minus(t.Lines)...)
				}
				left = rest
			case t.Holds(l.Target):
				gone = true
			}
		}
		if !gone && slices.Equal(left, []Lines{l.Target.Lines}) {
			kept = append(kept, l)
			continue
		}
		ended = append(ended, l)
		for _, part := range left {
			if !gone {
				rest := l
				rest.Target.Lines = part
				kept = append(kept, rest)
			}
		}
	}
	b.Leases = kept
	return ended
}

// drop ends every claim, and takes every waiter out of the queue, that the
// function names.
func (b *book) drop(lease func(*Lease) bool, waiter func(*Waiter) bool) (ended []Lease, gone []Waiter) {
	var lost []uint64
	b.Waiters = slices.DeleteFunc(b.Waiters, func(w Waiter) bool {
		if !waiter(&w) {
			return false
		}
		gone, lost = append(gone, w), append(lost, w.Granted...)
		return true
	})
	b.Leases = slices.DeleteFunc(b.Leases, func(l Lease) bool {
		if !slices.Contains(lost, l.Fence) && !lease(&l) {
			return false
		}
		ended = append(ended, l)
		return true
	})
	return ended, gone
}

// expire ends what has run out. It reports whether anything did.
func (b *book) expire(now moment) bool {
	n := len(b.Leases)
	b.Leases = slices.DeleteFunc(b.Leases, func(l Lease) bool { return l.expired(now) })
	return len(b.Leases) < n
}

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
		fmt.Fprintf(&b, " is claimed by %s: %s since %s, %s",
			l.Owner, quoted(l.Target.String()), clock(l.Since), until(l))
	}
	if n := len(e.Held) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	if len(e.Held) == 0 && len(e.Ahead) > 0 {
		w := e.Ahead[0]
		fmt.Fprintf(&b, " is waited for by %s, who asked earlier (%s since %s)",
			w.Owner, targetList(w.Targets), clock(w.Since))
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
