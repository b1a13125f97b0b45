package store

import (
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// ChangedError names files whose contents are not what their snapshot says any
// more. All other files were stored.
type ChangedError struct{ Paths []superqode.RelPath }

// Error names the first few paths.
func (e *ChangedError) Error() string {
	shown := make([]string, min(len(e.Paths), 3))
	for i := range shown {
		shown[i] = strconv.Quote(string(e.Paths[i]))
	}
	more := ""
	if n := len(e.Paths) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("changed since the scan: %s%s", strings.Join(shown, ", "), more)
}

const (
	packSmall  = 256 << 10 // files up to this size are read whole, several at a time
	packWindow = 64        // of which so many may wait for their turn to be written
)

// packPlain is the size from which contents are stored as they are: beyond it,
// compressing takes longer than all else that is done to them. Packing the store
// (see Pack) makes up for the room.
const packPlain = 8 << 20

func packLevel(entries []*snapshot.Entry) int {
	total := int64(0)
	for _, e := range entries {
		if total += e.Size; total > packPlain {
			return zlib.NoCompression
		}
	}
	return zlib.BestSpeed
}

// WriteBlobs stores the contents of entries (files read below root, links from
// the entry) as one pack; other kinds are passed over. What the store has in its
// own packs already is not written again; what only the origin has is, since the
// origin may lose it. When it returns the contents survive a power cut.
//
// Each content is checked against its id on the way. Where they differ, or the
// file is gone, the error is a *ChangedError with the paths; the contents found
// instead are stored too, and all others are.
func (s *Store) WriteBlobs(ctx context.Context, root string, entries []snapshot.Entry) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	unlock, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	want, err := s.packs.lacking(entries)
	if err != nil || len(want) == 0 {
		return err
	}
	p, err := s.newPack(filepath.Join(s.dir, "objects"), packLevel(want), len(want))
	if err != nil {
		return fmt.Errorf("store contents: %w", err)
	}
	ids, err := p.addFiles(ctx, root, want)
	if err != nil {
		return fmt.Errorf("store contents: %w", errors.Join(err, p.abort()))
	}
	if len(p.objects) == 0 {
		err = p.abort()
	} else {
		err = p.finish(ctx, true)
	}
	if err != nil {
		return fmt.Errorf("store contents: %w", err)
	}
	s.packs.remember(p.seen)
	var changed ChangedError
	for i := range want {
		if ids[i] != want[i].ID {
			changed.Paths = append(changed.Paths, want[i].Path)
		}
	}
	if len(changed.Paths) > 0 {
		return &changed
	}
	return nil
}

// lacking returns one entry for each content that the store's own packs lack.
func (o *ownPacks) lacking(entries []snapshot.Entry) ([]*snapshot.Entry, error) {
	seen := make(map[snapshot.ID]bool, len(entries))
	var want []*snapshot.Entry
	var ids []snapshot.ID
	for i := range entries {
		e := &entries[i]
		if e.Kind != snapshot.File && e.Kind != snapshot.Link || seen[e.ID] {
			continue
		}
		if e.ID.IsZero() {
			return nil, fmt.Errorf("store %q: the content id is not known", e.Path)
		}
		seen[e.ID] = true
		want, ids = append(want, e), append(ids, e.ID)
	}
	have, err := o.find(ids)
	if err != nil {
		return nil, err
	}
	rest := want[:0]
	for _, e := range want {
		if !have[e.ID] {
			rest = append(rest, e)
		}
	}
	return rest, nil
}

// packed is one prepared content on its way to the pack.
type packed struct {
	id      snapshot.ID
	encoded []byte
	big     bool // not prepared: to be streamed
	err     error
}

// addFiles adds the contents of entries in their order and returns the ids that
// were found, zero for a file that cannot be read any more. Small files are
// read, hashed and deflated by several goroutines.
func (p *packWriter) addFiles(ctx context.Context, root string, entries []*snapshot.Entry) ([]snapshot.ID, error) {
	dir, err := unix.Open(root, dirfd.PassFlags&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", root, err)
	}
	defer unix.Close(dir) //nolint:errcheck // opened for reading only
	ctx, cancel := context.WithCancel(ctx)
	type job struct {
		e    *snapshot.Entry
		done chan packed
	}
	jobs, order := make(chan job), make(chan job, packWindow)
	bufs := sync.Pool{}
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	for range min(runtime.NumCPU(), 4, len(entries)) {
		wg.Go(func() {
			enc := packEncoder{format: p.repo.format, level: p.level}
			cursor := dirfd.NewCursor(dir)
			defer cursor.Leave() //nolint:errcheck // opened for reading only
			var data []byte
			for j := range jobs {
				out, _ := bufs.Get().(*[]byte)
				if out == nil {
					out = new([]byte)
				}
				j.done <- enc.prepare(cursor, j.e, &data, (*out)[:0])
			}
		})
	}
	wg.Go(func() {
		defer close(jobs)
		defer close(order)
		for _, e := range entries {
			j := job{e, make(chan packed, 1)}
			select {
			case order <- j:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	ids := make([]snapshot.ID, 0, len(entries))
	for j := range order {
		var r packed
		select {
		case r = <-j.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		id, err := p.take(dir, j.e, r)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", j.e.Path, err)
		}
		if r.encoded != nil {
			bufs.Put(&r.encoded)
		}
		ids = append(ids, id)
	}
	return ids, ctx.Err()
}

// take writes one prepared content, or streams a big one.
func (p *packWriter) take(dir int, e *snapshot.Entry, r packed) (snapshot.ID, error) {
	switch {
	case r.err != nil:
		return snapshot.ID{}, ignoreGone(r.err)
	case !r.big:
		return r.id, p.add(r.id, r.encoded)
	}
	cursor := dirfd.NewCursor(dir)
	defer cursor.Leave() //nolint:errcheck // opened for reading only
	fd, size, err := openRegular(cursor, e.Path)
	if err != nil {
		return snapshot.ID{}, ignoreGone(err)
	}
	f := os.NewFile(uintptr(fd), string(e.Path))
	defer f.Close() //nolint:errcheck // opened for reading only
	return p.stream(size, f)
}

// ignoreGone passes errors on but those of a file that is no more what it was.
func ignoreGone(err error) error {
	for _, gone := range []error{os.ErrNotExist, os.ErrPermission, unix.ELOOP, unix.ENOTDIR, unix.EISDIR, unix.ENXIO, errNotRegular} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// prepare reads, hashes and deflates one small file or link.
func (e *packEncoder) prepare(dir *dirfd.Cursor, entry *snapshot.Entry, data *[]byte, out []byte) packed {
	if entry.Kind == snapshot.Link {
		enc, id, err := e.encode(out, blobObject, []byte(entry.Link))
		return packed{id: id, encoded: enc, err: err}
	}
	if entry.Size > packSmall {
		return packed{big: true}
	}
	fd, size, err := openRegular(dir, entry.Path)
	if err != nil {
		return packed{err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading only
	if size > packSmall {
		return packed{big: true}
	}
	if *data == nil {
		*data = make([]byte, packSmall+1)
	}
	n, err := dirfd.ReadAt(fd, *data, int(size), 0)
	if err != nil {
		return packed{err: err}
	}
	if n > packSmall {
		return packed{big: true} // it grew
	}
	enc, id, err := e.encode(out, blobObject, (*data)[:n])
	return packed{id: id, encoded: enc, err: err}
}

var errNotRegular = errors.New("not a regular file any more")

// openRegular opens a file without ever blocking on a FIFO that took its place,
// and returns its handle and size.
func openRegular(c *dirfd.Cursor, path superqode.RelPath) (int, int64, error) {
	dir, name := dirfd.Split(path)
	at, err := c.Enter(dir)
	if err != nil {
		return -1, 0, err
	}
	fd, err := dirfd.Open(at, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, 0, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		return -1, 0, errors.Join(err, unix.Close(fd))
	}
	return fd, st.Size, nil
}
