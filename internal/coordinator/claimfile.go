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
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

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
	return superqode.WithHint(&BrokenError{t.path(), why}, "superqode claim release --all --force lets every claim of this origin go and begins anew")
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
	if errors.Is(err, os.ErrPermission) {
		return superqode.WithHint(fmt.Errorf("cannot write the claims: %w", err), "superqode --home DIR … with a folder that you may write")
	}
	return err
}

// sweep ends the claims, and forgets the waiters, of dead processes, if one of
// those in the way is dead. It reports whether there were any.
func (t *Table) sweep(b *book, conflict *Conflict) (bool, error) {
	known := map[Holder]bool{}
	var failed error
	dead := func(h Holder) bool {
		if (h == Holder{}) {
			return false
		}
		alive, asked := known[h]
		if !asked {
			var err error
			if alive, err = t.alive(h); err != nil {
				failed, alive = errors.Join(failed, err), true // nobody's claim is taken away for our failure
			}
			known[h] = alive
		}
		return !alive
	}
	deadLease := func(l *Lease) bool { return dead(l.Holder) }
	deadWaiter := func(w *Waiter) bool { return dead(w.Holder) || !t.waits(w.Ticket) }
	if !slices.ContainsFunc(conflict.Held, func(l Lease) bool { return deadLease(&l) }) && !slices.ContainsFunc(conflict.Ahead, func(w Waiter) bool { return deadWaiter(&w) }) && !b.unfetched(conflict.Held, t.waits) {
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
		return slices.ContainsFunc(held, func(l Lease) bool { return slices.Contains(w.Granted, l.Fence) }) && !waits(w.Ticket)
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
