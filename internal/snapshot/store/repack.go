package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// packYoung is how old a pack must be before Pack touches it: whoever wrote it
// may be about to point a ref at what is in it.
const packYoung = 2 * time.Hour

// packMany is how many packs are worth putting together although nothing in them
// can be dropped.
const packMany = 24

// share takes the store's lock as a writer. Writers do not keep each other
// waiting; Pack is alone, because a writer that finds a content in a pack does
// not write it again.
func (r *repository) share(ctx context.Context) (unlock func() error, err error) {
	return lockfile.Share(ctx, r.lockPath())
}

// StoreLock is the name of the file in a store that writers lock.
const LockName = "superqode.lock"

func (r *repository) lockPath() string { return filepath.Join(r.dir, LockName) }

// PackOptions says what Pack takes for granted.
type PackOptions struct {
	Now time.Time
	// Idle is asked once the store is locked and reports whether nobody relies on
	// contents that no ref leads to: those of a session that is open.
	Idle func() (bool, error)
}

// Packed tells what Pack did.
type Packed struct {
	Done    bool
	Dropped int   // objects that nothing led to
	Freed   int64 // bytes
}

// Pack puts the store's own packs together into one and drops the objects that
// no ref leads to, when there is something to gain. Packs that are younger than
// two hours stay as they are, and objects that only the origin has are not
// brought in. Nothing is done while somebody writes to the store, and nothing is
// dropped that cannot be proven to be of no use: where an object is missing the
// error says so and all stays.
//
// git repack would do less: with --local it also drops what the origin happens
// to have at the moment, and without it packs the origin's objects too.
func (s *Store) Pack(ctx context.Context, opt PackOptions) (p Packed, err error) {
	if err := context.Cause(ctx); err != nil {
		return p, err
	}
	unlock, err := lockfile.TryLock(s.lockPath())
	if errors.Is(err, lockfile.ErrHeld) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if idle, err := opt.Idle(); err != nil || !idle {
		return p, err
	}
	old, err := s.packs.old(opt.Now)
	if err != nil || len(old) == 0 {
		return p, err
	}
	reachable, err := s.reachable(ctx)
	if err != nil {
		return p, fmt.Errorf("pack store: %w", err)
	}
	keep, dropped, err := s.packs.worthKeeping(old, reachable)
	if err != nil || dropped == 0 && len(old) < packMany {
		return p, err
	}
	before := packBytes(s.packs.packDir())
	failpoint.Hit("cleanup.pack")
	fresh, err := s.packs.write(ctx, keep)
	if err != nil {
		return p, fmt.Errorf("pack store: %w", err)
	}
	failpoint.Hit("cleanup.packed")
	if err := dropPacks(old, fresh); err != nil {
		return p, fmt.Errorf("pack store: %w", err)
	}
	s.packs.forget()
	return Packed{true, dropped, before - packBytes(s.packs.packDir())}, atomicfile.SyncDir(s.packs.packDir())
}

func (o *ownPacks) packDir() string { return filepath.Join(o.dir, "objects", "pack") }

// old returns the paths, without their ends, of the packs that may be
// replaced, and clears away what a pack that was never finished left.
func (o *ownPacks) old(now time.Time) ([]string, error) {
	entries, err := os.ReadDir(o.packDir())
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	var old []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < packYoung {
			continue
		}
		path := filepath.Join(o.packDir(), e.Name())
		base, index := strings.CutSuffix(e.Name(), ".idx")
		switch {
		case strings.HasPrefix(e.Name(), "tmp_"), strings.HasPrefix(e.Name(), ".tmp-"):
			err = os.Remove(path)
		case strings.HasSuffix(e.Name(), ".pack") && !there[strings.TrimSuffix(e.Name(), ".pack")+".idx"]:
			err = os.Remove(path) // its index was removed first, or never came
		case index && there[base+".pack"] && !there[base+".keep"] && strings.HasPrefix(base, "pack-"):
			old = append(old, strings.TrimSuffix(path, ".idx"))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return old, nil
}

// reachable returns every object that a ref leads to; of copied commits the history
// before them is the origin's. Where one is missing git fails, and so must this.
func (s *Store) reachable(ctx context.Context) (map[snapshot.ID]bool, error) {
	refs, err := s.ListRefs(ctx, refPrefix)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, r := range refs {
		there[r.Name] = true
	}
	var own, copied strings.Builder
	for _, r := range refs {
		head, base := strings.CutSuffix(r.Name, BaseSuffix)
		switch {
		case base && there[head]:
		case there[r.Name+BaseSuffix]:
			fmt.Fprintf(&copied, "%s\n^%s%s\n", r.Name, r.Name, BaseSuffix)
		default:
			own.WriteString(r.Name + "\n")
		}
	}
	ids := map[snapshot.ID]bool{}
	for _, list := range []string{own.String(), copied.String()} {
		if list == "" {
			continue
		}
		if err := s.listObjects(ctx, list, ids); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// listObjects adds what revisions, one a line, lead to.
func (s *Store) listObjects(ctx context.Context, revisions string, ids map[snapshot.ID]bool) error {
	out, err := s.out(ctx, strings.NewReader(revisions), "rev-list", "--objects", "--no-object-names", "--stdin")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		id, err := snapshot.ParseID(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		ids[id] = true
	}
	return nil
}

// worthKeeping divides the objects of packs.
func (o *ownPacks) worthKeeping(packs []string, reachable map[snapshot.ID]bool) (keep map[snapshot.ID]bool, dropped int, err error) {
	keep = map[snapshot.ID]bool{}
	gone := map[snapshot.ID]bool{}
	for _, p := range packs {
		ids, err := o.indexIDs(p + ".idx")
		if err != nil {
			return nil, 0, err
		}
		for _, id := range ids {
			if reachable[id] {
				keep[id] = true
			} else {
				gone[id] = true
			}
		}
	}
	return keep, len(gone), nil
}

// indexIDs reads the ids that a pack index (version 2) lists.
func (o *ownPacks) indexIDs(path string) ([]snapshot.ID, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	const head = 8 + 256*4
	width := o.format.Size()
	if len(data) < head || string(data[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return nil, fmt.Errorf("%s is no pack index of version 2", path)
	}
	n := int(binary.BigEndian.Uint32(data[head-4:]))
	if len(data) < head+n*width {
		return nil, fmt.Errorf("%s is cut short", path)
	}
	ids := make([]snapshot.ID, n)
	for i := range ids {
		ids[i] = snapshot.IDFrom(data[head+i*width : head+(i+1)*width])
	}
	return ids, nil
}

// write writes the objects into a new pack, synced, and returns its path
// without an end; "" when there are none. What is packed already is copied as it
// is.
func (o *ownPacks) write(ctx context.Context, ids map[snapshot.ID]bool) (string, error) {
	if len(ids) == 0 {
		return "", nil
	}
	var in bytes.Buffer
	for id := range ids {
		in.WriteString(id.String() + "\n")
	}
	dst := filepath.Join(o.packDir(), "pack")
	sum, err := o.out(ctx, &in, "-c", "pack.writeReverseIndex=false", "pack-objects", "-q", "--window=0", dst)
	if err != nil {
		return "", err
	}
	path := dst + "-" + strings.TrimSpace(sum)
	for _, end := range []string{".pack", ".idx"} {
		f, err := os.Open(path + end)
		if err != nil {
			return "", err
		}
		if err := errors.Join(atomicfile.Sync(f), f.Close()); err != nil {
			return "", err
		}
	}
	have, err := o.indexIDs(path + ".idx")
	if err == nil && len(have) != len(ids) {
		err = fmt.Errorf("%d objects packed of %d", len(have), len(ids))
	}
	return path, errors.Join(err, atomicfile.SyncDir(o.packDir()))
}

// dropPacks deletes packs, each its index first: an index without a pack would
// claim contents that are not there.
func dropPacks(packs []string, but string) error {
	for _, p := range packs {
		if p == but {
			continue
		}
		for _, end := range []string{".idx", ".rev", ".bitmap", ".pack"} {
			if err := removeIfThere(p + end); err != nil {
				return err
			}
		}
		failpoint.Hit("cleanup.pack-dropped")
	}
	return nil
}

// packBytes is the size of all files in a folder.
func packBytes(dir string) (n int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
