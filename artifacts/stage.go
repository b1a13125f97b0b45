package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// workers is how many contents are copied at once: the time goes to waiting for
// the disk to sync, not to hashing.
const workers = 4

type copyBuffer [1 << 17]byte

// stage copies the contents into the folders where they will stand, under
// temporary names, hashing them on the way. A content that can not be read sets
// its item's err; the error returned is about the store.
func (s *Store) stage(ctx context.Context, items []*item) error {
	p, err := s.open(true)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	buffers := sync.Pool{New: func() any { return new(copyBuffer) }}
	for _, it := range items {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			buf := buffers.Get().(*copyBuffer)
			defer buffers.Put(buf)
			return it.stage(gctx, p.root, buf[:])
		})
	}
	err = g.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, p.close())
}

func (it *item) stage(ctx context.Context, root *os.Root, buf []byte) error {
	src, err := it.open()
	if err != nil {
		it.err = err
		return nil
	}
	defer src.Close() // read only: nothing is lost
	dir, err := openFolders(root, it.folder, true)
	if err != nil {
		return err
	}
	h := sha256.New()
	tmp, err := writeTemp(dir, func(w io.Writer) error {
		return it.fill(ctx, io.MultiWriter(h, w), src, buf)
	})
	if it.err != nil {
		err = nil // the source's fault; writeTemp has cleaned up
	}
	if err = errors.Join(err, dir.Close()); err != nil || it.err != nil {
		return err
	}
	it.tmp, it.SHA256 = tmp, hex.EncodeToString(h.Sum(nil))
	return nil
}

// fill copies the content, masked where that is wanted; the item's size is that
// of what was written.
func (it *item) fill(ctx context.Context, dst io.Writer, src io.Reader, buf []byte) error {
	if it.mask == nil {
		return it.copy(ctx, dst, src, buf)
	}
	count := &counter{w: dst}
	masked := it.mask(count)
	err := it.copy(ctx, masked, src, buf)
	if cerr := masked.Close(); err == nil {
		err = cerr
	}
	it.Size = count.n
	return err
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

// Write passes b on.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// copy is io.CopyBuffer that knows whose fault an error is and obeys ctx.
func (it *item) copy(ctx context.Context, dst io.Writer, src io.Reader, buf []byte) error {
	for it.Size = 0; ; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := src.Read(buf)
		if _, werr := dst.Write(buf[:n]); werr != nil {
			return werr
		}
		if it.Size += int64(n); it.limit > 0 && it.Size > it.limit {
			it.err = fmt.Errorf("larger than the %d bytes that were left", it.limit)
			return it.err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			it.err = err
			return err
		}
	}
}

// drop removes the temporary files that are left of items.
func (s *Store) drop(items []*item) (err error) {
	if !slices.ContainsFunc(items, func(it *item) bool { return it.tmp != "" }) {
		return nil
	}
	p, err := s.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, it := range items {
		if it.tmp != "" {
			err = errors.Join(err, it.in(p.root, func(dir *os.Root) error { return dir.Remove(it.tmp) }))
			it.tmp = ""
		}
	}
	return err
}

func (it *item) in(root *os.Root, do func(dir *os.Root) error) error {
	dir, err := openFolders(root, it.folder, false)
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}

// commit gives the staged items their places and entries, in one change of the
// manifest.
func (s *Store) commit(ctx context.Context, items []*item) (list []Artifact, err error) {
	defer func() { err = errors.Join(err, s.drop(items)) }()
	err = s.update(ctx, func(p *place, m *manifest) (func() error, error) {
		pl := &plan{root: p.root, m: m, taken: map[string]bool{}}
		for _, it := range items {
			a, err := pl.add(it)
			if err != nil {
				return nil, err
			}
			list = append(list, a)
			m.touch(a.Session, now())
		}
		s.warn(pl.warnings...)
		if !pl.changed {
			return nil, nil
		}
		return pl.run, nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
