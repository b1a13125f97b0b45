package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/proctable"
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
			err := superqode.Errorf(superqode.ErrNotFound, "%s has no claim on %s", o, targetList(targets))
			return false, superqode.WithHint(err, "superqode claim list")
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
	var unknown error // a holder that cannot be asked about is shown
	dead := t.deaths(&unknown)
	b.drop(func(l *Lease) bool { return dead(l.Holder) },
		func(w *Waiter) bool { return dead(w.Holder) || !w.pending() || !t.waits(w.Ticket) })
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
	return slices.IndexFunc(b.Waiters, func(w Waiter) bool { return w.Ticket == ticket })
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

// The book lies in claims.json of the project's folder, guarded by claims.lock,
// in two lines, so that the second need not be read twice:
//
//	{"schema_version":1,"sum":"<sha256 of the next line>"}
//	{"fence":7,"ticket":3,"leases":[…],"waiters":[…]}
//
// It is replaced by a rename, without waiting for the disk: the holders that a
// power cut leaves are none. What it may leave instead, a file that is cut or
// full of zeros, does not have its sum and is refused, as is one that somebody
// edited: from a wrong book overlapping claims could be granted.
const (
	bookFile   = "claims.json"
	bookLock   = "claims.lock"
	waitFolder = "claims.d"

	bookSchema = 1
)

type bookHead struct {
	SchemaVersion int    `json:"schema_version"`
	Sum           string `json:"sum"`
}

// BrokenError means that the file with the claims cannot be believed. Nothing
// is granted until somebody has let all claims go.
type BrokenError struct {
	Path string
	Why  string
}

// Error names the file.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the claims in %s cannot be read, so none is granted: %s", e.Path, e.Why)
}

// Table is the claims of one origin. Several processes may use it at once.
type Table struct {
	dir   string
	clock func() moment
	alive func(Holder) (bool, error)
}

// OpenTable returns the claims that are kept in dir, the project's folder. It
// touches nothing.
func OpenTable(dir string) *Table {
	return &Table{dir: dir, clock: readClock, alive: isAlive}
}

func (t *Table) path() string { return filepath.Join(t.dir, bookFile) }

func readClock() moment {
	boot, up := uptime()
	return moment{wall: time.Now().UTC().Truncate(time.Millisecond), boot: boot, up: up}
}

// read returns the book as it stands on disk. One that is not there is empty.
func (t *Table) read() (*book, error) {
	data, err := atomicfile.Read(t.path())
	if errors.Is(err, os.ErrNotExist) {
		return &book{}, nil
	}
	if errors.Is(err, atomicfile.ErrNotRegular) {
		return nil, t.broken("it is not a file")
	}
	if err != nil {
		return nil, err
	}
	b, why := parseBook(data)
	if why != "" {
		return nil, t.broken(why)
	}
	return b, nil
}

func (t *Table) broken(why string) error {
	return superqode.WithHint(&BrokenError{t.path(), why},
		"superqode claim release --all --force lets every claim of this origin go and begins anew")
}

func parseBook(data []byte) (b *book, why string) {
	var e bookHead
	head, claims, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(head, &e); err != nil {
		return nil, "it does not begin with the expected JSON object"
	}
	switch {
	case e.SchemaVersion > bookSchema:
		return nil, fmt.Sprintf("it has schema_version %d, this superqode knows %d", e.SchemaVersion, bookSchema)
	case e.SchemaVersion != bookSchema:
		return nil, "it has no schema_version"
	case e.Sum != sumOf(claims):
		return nil, "its contents do not have their sum"
	}
	b = &book{}
	if err := json.Unmarshal(claims, b); err != nil {
		return nil, err.Error()
	}
	return b, ""
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (t *Table) write(b *book) error {
	claims, err := json.Marshal(b)
	if err != nil {
		return err
	}
	claims = append(claims, '\n')
	head, err := json.Marshal(bookHead{bookSchema, sumOf(claims)})
	if err != nil {
		return err
	}
	return atomicfile.Replace(t.path(), slices.Concat(head, []byte("\n"), claims), 0o600)
}

// update changes the book under its lock. change reports whether there is
// something to write; the waiters that it served are woken afterwards.
func (t *Table) update(ctx context.Context, change func(b *book, now moment) (save bool, err error)) (err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(t.dir, bookLock))
	if err != nil {
		return t.homeError(err)
	}
	served, err := t.locked(change)
	if err = errors.Join(err, unlock()); err != nil {
		return t.homeError(err)
	}
	for _, ticket := range served {
		t.wake(ticket)
	}
	return nil
}

func (t *Table) locked(change func(b *book, now moment) (bool, error)) (served []uint64, err error) {
	b, err := t.read()
	if err != nil {
		return nil, err
	}
	now := t.clock()
	save := b.expire(now)
	changed, err := change(b, now)
	if err != nil {
		return nil, err
	}
	b.promote(now)
	if save || changed || len(b.served) > 0 {
		err = t.write(b)
	}
	return b.served, err
}

func (t *Table) homeError(err error) error {
	if atomicfile.Denied(err) {
		err := fmt.Errorf("cannot write the claims: %w", err)
		return superqode.WithHint(err, "superqode --home DIR … with a folder that you may write")
	}
	return err
}

// deaths returns what tells whether a holder is dead and asks about each once. One
// that cannot be asked about counts as alive, and failed says why: nobody's claim
// is taken away for our failure.
func (t *Table) deaths(failed *error) func(Holder) bool {
	known := map[Holder]bool{}
	return func(h Holder) bool {
		alive, asked := known[h]
		if !asked {
			var err error
			alive, err = t.alive(h)
			*failed = errors.Join(*failed, err)
			alive = alive || err != nil
			known[h] = alive
		}
		return !alive
	}
}

// sweep ends the claims, and forgets the waiters, of dead processes, if one of
// those in the way is dead. It reports whether there were any.
func (t *Table) sweep(b *book, conflict *Conflict) (bool, error) {
	var failed error
	dead := t.deaths(&failed)
	deadLease := func(l *Lease) bool { return dead(l.Holder) }
	deadWaiter := func(w *Waiter) bool { return dead(w.Holder) || !t.waits(w.Ticket) }
	held := slices.ContainsFunc(conflict.Held, func(l Lease) bool { return deadLease(&l) })
	ahead := slices.ContainsFunc(conflict.Ahead, func(w Waiter) bool { return deadWaiter(&w) })
	if !held && !ahead && !b.unfetched(conflict.Held, t.waits) {
		return false, failed
	}
	ended, gone := b.drop(deadLease, deadWaiter)
	for _, w := range gone {
		_ = os.Remove(t.waitPath(w.Ticket)) // what stays is an empty FIFO under a number that does not come again
	}
	return len(ended)+len(gone) > 0, failed
}

// unfetched reports whether one of the claims was granted to a waiter that died
// before it knew.
func (b *book) unfetched(held []Lease, waits func(ticket uint64) bool) bool {
	return slices.ContainsFunc(b.Waiters, func(w Waiter) bool {
		return slices.ContainsFunc(held, func(l Lease) bool { return slices.Contains(w.Granted, l.Fence) }) &&
			!waits(w.Ticket)
	})
}

// Forget lets every claim go, those in a broken file too, and empties the queue.
// Fencing numbers go on growing: a broken file's are below the clock.
func (t *Table) Forget(ctx context.Context) (n int, err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(t.dir, bookLock))
	if err != nil {
		return 0, t.homeError(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	b, err := t.read()
	var broken *BrokenError
	switch {
	case errors.As(err, &broken):
		if err := os.RemoveAll(t.path()); err != nil {
			return 0, err
		}
		now := uint64(t.clock().wall.UnixMicro())
		return 0, t.write(&book{Fence: now, Ticket: now})
	case err != nil:
		return 0, err
	}
	n = len(b.Leases)
	return n, t.write(&book{Fence: b.Fence, Ticket: b.Ticket})
}

// ProcessHolder makes a running process the holder of claims. A process that is
// not there is an error that wraps superqode.ErrNotFound.
func ProcessHolder(pid int) (Holder, error) {
	p, ok := proctable.Read(pid)
	if !ok {
		return Holder{}, superqode.Errorf(superqode.ErrNotFound, "there is no process %d", pid)
	}
	return Holder{PID: pid, Start: p.Start}, nil
}

// LockHolder makes the keeper of a lock file's flock the holder of claims. The
// lock must be taken already.
func LockHolder(path string) Holder { return Holder{Lock: superqode.HostPath(path)} }

// isAlive asks the kernel. A process number that was given to another process
// since is a dead holder.
func isAlive(h Holder) (bool, error) {
	switch {
	case h.Lock != "":
		held, err := lockfile.IsHeld(string(h.Lock))
		if os.IsPermission(err) {
			return true, err
		}
		return held, err
	case h.PID != 0:
		p, ok := proctable.Read(h.PID)
		return ok && p.Start == h.Start && !p.Dead, nil
	}
	return true, nil
}

// A waiter keeps a FIFO open, claims.d/<ticket>. The process that serves the ticket writes
// one byte into it, so that nobody has to look again and again; and since the
// kernel closes it with its process, a FIFO that nobody reads is a waiter that
// has died. A byte that got lost costs one turn of recheck.

// waitLine is the waiting process's end.
type waitLine struct {
	ticket uint64
	path   string
	fifo   *os.File
}

func (t *Table) waitPath(ticket uint64) string {
	return filepath.Join(t.dir, waitFolder, strconv.FormatUint(ticket, 10))
}

func (t *Table) openLine(ticket uint64) (*waitLine, error) {
	path := t.waitPath(ticket)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(path); err != nil { // from before the claims were begun anew
		return nil, err
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	// Open for both, so that the opening waits for nobody and no end of file comes
	// when the writer ends.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &waitLine{ticket, path, f}, nil
}

// close gives the line up. A nil one is no line.
func (w *waitLine) close() error {
	if w == nil {
		return nil
	}
	err := w.fifo.Close()
	if rerr := os.Remove(w.path); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// pause returns when the ticket may have been served, when the context ends, and
// after d at the latest.
func (w *waitLine) pause(ctx context.Context, d time.Duration) {
	var b [64]byte
	if err := w.fifo.SetReadDeadline(time.Now().Add(d)); err != nil { // Go does not poll FIFOs on this system
		select {
		case <-ctx.Done():
		case <-time.After(d / 10):
		}
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = w.fifo.SetReadDeadline(time.Now()) })
	defer stop()
	_, _ = w.fifo.Read(b[:]) // a byte, the deadline, or an error: each is a reason to look
}

// wake notifies a waiter that it was served.
func (t *Table) wake(ticket uint64) {
	fd, err := unix.Open(t.waitPath(ticket), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // it has died, and the next process that looks will see that
	}
	_, _ = unix.Write(fd, []byte{1})
	_ = unix.Close(fd)
}

// waits reports whether the process of a ticket still waits.
func (t *Table) waits(ticket uint64) bool {
	fd, err := unix.Open(t.waitPath(ticket), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR)
	}
	_ = unix.Close(fd)
	return true
}
