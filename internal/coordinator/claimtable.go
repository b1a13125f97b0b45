package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/seed-2d964004/superqode"
)

// Acquire grants all targets of a request, or none: then the error is a
// *ConflictError, which wraps superqode.ErrConflict. With a wait it stands in
// the queue for that long; a negative wait has no end. A request that would close
// a circle of waiting owners is refused at once.
func (t *Table) Acquire(ctx context.Context, r Request, wait time.Duration) ([]Lease, error) {
	if r.Agent.IsZero() || len(r.Targets) == 0 {
		return nil, superqode.Errorf(superqode.ErrUsage, "a claim needs an agent and a file")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var out []Lease
	var conflict *Conflict
	var line *waitLine
	err := t.update(ctx, func(b *book, now moment) (save bool, err error) {
		swept := false
		if out, conflict, err = b.request(&r, now); conflict != nil && err == nil {
			if swept, err = t.sweep(b, conflict); err == nil && swept {
				b.promote(now) // waiting requests come first
				out, conflict, err = b.request(&r, now)
			}
		}
		if err != nil || conflict == nil || wait == 0 {
			return swept || out != nil, err
		}
		line, err = t.join(b, r, now, conflict)
		return true, err
	})
	switch {
	case err != nil:
		return nil, errors.Join(err, line.close())
	case line != nil:
		return t.await(ctx, line, wait)
	case conflict != nil:
		return nil, &ConflictError{*conflict}
	}
	return out, nil
}

// join puts a request into the queue, or its circle into the conflict.
func (t *Table) join(b *book, r Request, now moment, conflict *Conflict) (*waitLine, error) {
	ticket, circle, err := b.enqueue(r, now)
	if err != nil || circle != nil {
		conflict.Circle = circle
		return nil, err
	}
	return t.openLine(ticket)
}

// await waits until the queue served the ticket.
func (t *Table) await(ctx context.Context, line *waitLine, wait time.Duration) ([]Lease, error) {
	start := time.Now()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, errWaited)
		defer cancel()
	}
	for {
		line.pause(ctx, recheck)
		last := ctx.Err() != nil
		out, conflict, err := t.fetch(context.WithoutCancel(ctx), line, last)
		switch {
		case err != nil:
			return nil, errors.Join(err, line.close())
		case out != nil:
			return out, line.close()
		case !last:
			continue
		}
		if err := context.Cause(ctx); !errors.Is(err, errWaited) {
			return nil, errors.Join(err, line.close())
		}
		conflict.Waited = time.Since(start)
		return nil, errors.Join(&ConflictError{*conflict}, line.close())
	}
}

var errWaited = errors.New("waited long enough")

// recheck is how often a waiter looks whether those before it are still alive.
const recheck = 200 * time.Millisecond

// fetch takes what a waiter was given. The last one also takes it out of the
// queue; its context must not end before: a queue with somebody in it who has
// gone would stop the others.
func (t *Table) fetch(ctx context.Context, line *waitLine, last bool) (out []Lease, conflict *Conflict, err error) {
	err = t.update(ctx, func(b *book, now moment) (bool, error) {
		i := b.waiter(line.ticket)
		if i < 0 {
			return false, errors.New("the claims were all let go by somebody while this waited")
		}
		r := b.Waiters[i].Request
		swept := false
		if b.Waiters[i].pending() {
			conflict = b.conflict(&r, line.ticket)
			if swept, err = t.sweep(b, conflict); err != nil {
				return swept, err
			}
			b.promote(now)
			if i = b.waiter(line.ticket); i < 0 { // the holder that it asked for has died
				return swept, superqode.Errorf(superqode.ErrNotFound, "the holder of the claim has ended")
			}
		}
		switch {
		case !b.Waiters[i].pending():
			out, conflict = b.granted(&r), nil
			b.leave(line.ticket, true)
		case last:
			conflict = b.conflict(&r, line.ticket)
			b.leave(line.ticket, false)
		}
		return last || swept || out != nil, nil
	})
	return out, conflict, err
}

func (b *book) conflict(r *Request, ticket uint64) *Conflict {
	held, ahead := b.obstacles(r, ticket)
	return &Conflict{Wanted: r.Targets, Owner: r.Owner, Held: held, Ahead: ahead}
}

// Release ends what the owner holds of the targets, or with none of them all
// that it holds, and returns what was ended, as it was before. Nothing to
// release is an error that wraps superqode.ErrNotFound.
func (t *Table) Release(ctx context.Context, o Owner, targets []Target) (ended []Lease, err error) {
	if len(targets) == 0 {
		targets = []Target{{KindDir, ".", Lines{}}}
	}
	err = t.update(ctx, func(b *book, _ moment) (bool, error) {
		ended = b.release(o, targets)
		if len(ended) == 0 {
			return false, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s has no claim on %s", o, targetList(targets)), "superqode claim list")
		}
		return true, nil
	})
	return ended, err
}

// End releases all that a holder keeps, when its work is done.
func (t *Table) End(ctx context.Context, h Holder) error {
	return t.end(ctx, func(l *Lease) bool { return l.Holder == h }, func(w *Waiter) bool { return w.Holder == h })
}

// EndSession releases all that the agents of a session hold, and takes them out
// of the queue.
func (t *Table) EndSession(ctx context.Context, id superqode.SessionID) error {
	return t.end(ctx, func(l *Lease) bool { return l.Session == id }, func(w *Waiter) bool { return w.Session == id })
}

// end drops claims and waiters, and takes no lock where there are none.
func (t *Table) end(ctx context.Context, lease func(*Lease) bool, waiter func(*Waiter) bool) error {
	b, err := t.read()
	if err != nil {
		return err
	}
	if ended, gone := b.drop(lease, waiter); len(ended)+len(gone) == 0 {
		return nil
	}
	return t.update(ctx, func(b *book, _ moment) (bool, error) {
		b.drop(lease, waiter)
		return true, nil
	})
}

// List returns the claims that stand, and the requests that wait, in the order of asking. It
// writes nothing: what ended with its holder is left out.
func (t *Table) List(ctx context.Context) ([]Lease, []Waiter, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	b, err := t.read()
	if err != nil {
		return nil, nil, err
	}
	now := t.clock()
	b.expire(now)
	known := map[Holder]bool{}
	dead := func(h Holder) bool {
		alive, asked := known[h]
		if !asked {
			ok, err := t.alive(h)
			alive = ok || err != nil
			known[h] = alive
		}
		return !alive
	}
	b.drop(func(l *Lease) bool { return dead(l.Holder) }, func(w *Waiter) bool { return dead(w.Holder) || !w.pending() || !t.waits(w.Ticket) })
	return b.Leases, b.Waiters, nil
}

// Held returns which of the claims are others' and overlap the targets.
func Held(leases []Lease, o Owner, targets []Target) (held []Lease) {
	r := Request{Owner: o, Targets: targets}
	for _, l := range leases {
		if l.Owner != o && r.overlaps(l.Target) {
			held = append(held, l)
		}
	}
	return held
}

func (b *book) waiter(ticket uint64) int {
	for i := range b.Waiters {
		if b.Waiters[i].Ticket == ticket {
			return i
		}
	}
	return -1
}

// granted are the claims by which an owner holds what it asked for.
func (b *book) granted(r *Request) (out []Lease) {
	for _, t := range r.Targets {
		for _, l := range b.Leases {
			if l.Owner == r.Owner && l.Holder == r.Holder && l.Target.Holds(t) {
				out = append(out, l)
				break
			}
		}
	}
	return out
}
