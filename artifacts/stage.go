package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
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
		return it.copy(ctx, io.MultiWriter(h, w), src, buf)
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

// plan decides first where every item goes, without touching a file, and renames
// afterwards; what it did is undone when a later rename fails.
type plan struct {
	root     *os.Root
	m        *manifest
	taken    map[string]bool // paths that this plan fills
	moves    []move
	warnings []Problem
	changed  bool
}

// move renames from to to in folder; item is nil where a stranger's file is set
// aside.
type move struct {
	folder, from, to string
	item             *item
	over             bool // replaces our own earlier content
}

func (p *plan) add(it *item) (Artifact, error) {
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		rel := path.Join(it.folder, numbered(base, n))
		var err error
		if it.Path, err = superqode.ParseRelPath(rel); err != nil {
			return Artifact{}, err
		}
		e := p.m.byPath(rel)
		onDisk, sum, err := p.look(rel)
		if err != nil {
			return Artifact{}, err
		}
		taken := p.taken[rel]
		sameEntry := e != nil && e.Session == it.Session && e.SHA256 == it.SHA256 && e.Size == it.Size
		switch {
		case sameEntry && (taken || sum == it.SHA256): // added before
			return e.Artifact, nil
		case sameEntry && !onDisk: // recorded and lost: repaired
			p.put(it, false)
			return e.Artifact, nil
		case e == nil && sum == it.SHA256: // in place, but the manifest was not written
			p.taken[rel] = true
			return p.enter(it), nil
		case e == nil && !onDisk:
			p.put(it, false)
			return p.enter(it), nil
		case it.replace && (taken || e != nil && e.Session != it.Session):
			return Artifact{}, superqode.Errorf(superqode.ErrConflict, "artifact path %s belongs to %s", visible(rel), e.ID)
		case it.replace:
			return p.replace(it, e, onDisk, sum)
		}
	}
}

// look returns whether something is at rel and the sum of its content, "" when it
// is no regular file.
func (p *plan) look(rel string) (onDisk bool, sum string, err error) {
	sum, _, err = hashBelow(p.root, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if _, ok := errors.AsType[*kindError](err); ok {
		return true, "", nil
	}
	return true, sum, err
}

// replace puts it where an earlier artifact of its session, or a stranger's file,
// is. What is there is overwritten only when it is what the manifest recorded.
func (p *plan) replace(it *item, e *entry, onDisk bool, sum string) (Artifact, error) {
	rel := it.Path.String()
	if onDisk && (e == nil || e.SHA256 != sum) && sum != it.SHA256 {
		aside, err := p.asideName(it)
		if err != nil {
			return Artifact{}, err
		}
		p.moves = append(p.moves, move{folder: it.folder, from: path.Base(rel), to: aside})
		p.warnings = append(p.warnings, Problem{rel, "was not what the manifest says; kept as " + visible(aside)})
		onDisk = false
	}
	p.put(it, onDisk)
	if e == nil {
		return p.enter(it), nil
	}
	a := it.Artifact
	a.ID = e.ID
	e.change(a)
	return a, nil
}

func (p *plan) asideName(it *item) (string, error) {
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		c := fmt.Sprint(base[:min(len(base), 200)], ".replaced-", n)
		if onDisk, _, err := p.look(path.Join(it.folder, c)); err != nil || !onDisk {
			return c, err
		}
	}
}

func (p *plan) put(it *item, over bool) {
	rel := it.Path.String()
	p.taken[rel], p.changed = true, true
	p.moves = append(p.moves, move{folder: it.folder, from: it.tmp, to: path.Base(rel), item: it, over: over})
}

func (p *plan) enter(it *item) Artifact {
	p.changed = true
	return p.m.add(it.Artifact)
}

// run makes the moves. On an error the files that had no predecessor are taken
// away again and what was set aside comes back.
func (p *plan) run() (err error) {
	var undo []move
	folders := map[string]bool{}
	defer func() {
		if err == nil {
			return
		}
		for _, mv := range slices.Backward(undo) {
			err = errors.Join(err, p.rename(mv.folder, mv.to, mv.from))
			if mv.item != nil {
				mv.item.tmp = mv.from // commit drops it
			}
		}
	}()
	for _, mv := range p.moves {
		if err := failpoint.Err("artifacts.place"); err != nil {
			return err
		}
		if err := p.rename(mv.folder, mv.from, mv.to); err != nil {
			return err
		}
		if mv.item != nil {
			mv.item.tmp = ""
		}
		if !mv.over {
			undo = append(undo, mv)
		}
		for d := mv.folder; d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	for d := range folders {
		if err := p.sync(d); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) rename(folder, from, to string) error {
	dir, err := openFolders(p.root, folder, false)
	if err != nil {
		return err
	}
	return errors.Join(dir.Rename(from, to), dir.Close())
}

func (p *plan) sync(folder string) error {
	dir, err := openFolders(p.root, folder, false)
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(dir), dir.Close())
}
