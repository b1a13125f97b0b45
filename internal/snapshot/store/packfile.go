package store

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// objectKind is the type of an object in a pack.
type objectKind byte

const (
	commitObject objectKind = 1
	treeObject   objectKind = 2
	blobObject   objectKind = 3
)

func (k objectKind) String() string { return [...]string{"", "commit", "tree", "blob"}[k] }

// packWriter writes one pack of undeltified objects in one pass: nothing is read
// back or inflated again, and big files are never whole in memory. go-git's own
// PackfileWriter parses the stream once more, object by object in memory, which
// costs more than writing it; of go-git the index format is used.
type packWriter struct {
	repo     *repository
	dir      string // …/objects/pack
	level    int    // of zlib
	declared int    // objects announced in the header
	f        *os.File
	buf      *bufio.Writer
	sum      hash.Hash // over all bytes so far
	off      int64
	objects  []packedObject
	seen     map[snapshot.ID]bool
	cut      bool // bytes were taken back: sum is of more than there is
}

type packedObject struct {
	id  snapshot.ID
	off int64
	crc uint32
}

// newPack starts a pack of about count objects in an objects folder.
func (r *repository) newPack(objects string, level, count int) (*packWriter, error) {
	dir := filepath.Join(objects, "pack")
	f, err := os.CreateTemp(dir, "tmp_pack_") // the name that git's gc knows as rubbish
	if err != nil {
		return nil, err
	}
	p := &packWriter{repo: r, dir: dir, level: level, declared: count, f: f, buf: bufio.NewWriterSize(f, 256<<10), sum: r.format.NewHash(), seen: map[snapshot.ID]bool{}}
	// Signature, version 2 and the number of objects.
	head := append([]byte("PACK\x00\x00\x00\x02"), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(head[8:], uint32(count))
	return p, p.write(head)
}

func (p *packWriter) write(b []byte) error {
	p.sum.Write(b)
	p.off += int64(len(b))
	_, err := p.buf.Write(b)
	return err
}

// add writes an object that encode has prepared, once.
func (p *packWriter) add(id snapshot.ID, encoded []byte) error {
	if p.seen[id] {
		return nil
	}
	p.seen[id] = true
	p.objects = append(p.objects, packedObject{id, p.off, crc32.ChecksumIEEE(encoded)})
	return p.write(encoded)
}

// stream writes a blob of exactly size bytes from r and returns its id. If r ends
// early the blob is filled up with zeros, for its size is written already; the
// id then tells that it is not what was wanted. A blob that the pack has already
// is taken back again: git refuses a pack that holds more objects than its index.
func (p *packWriter) stream(size int64, r io.Reader) (snapshot.ID, error) {
	crc, off := crc32.NewIEEE(), p.off
	sink := writerFunc(func(b []byte) (int, error) {
		crc.Write(b)
		return len(b), p.write(b)
	})
	if _, err := sink(objectHeader(nil, blobObject, size)); err != nil {
		return snapshot.ID{}, err
	}
	zw, err := zlib.NewWriterLevel(sink, p.level)
	if err != nil {
		return snapshot.ID{}, err
	}
	h := p.repo.format.NewBlobHash(size)
	both := io.MultiWriter(zw, h)
	n, err := io.CopyN(both, r, size)
	if err == io.EOF {
		_, err = io.CopyN(both, zeros{}, size-n)
	}
	if err != nil {
		return snapshot.ID{}, err
	}
	if err := zw.Close(); err != nil {
		return snapshot.ID{}, err
	}
	id := snapshot.IDFrom(h.Sum(nil))
	if p.seen[id] {
		return id, p.back(off)
	}
	p.seen[id] = true
	p.objects = append(p.objects, packedObject{id, off, crc.Sum32()})
	return id, nil
}

// back takes away what was written after off.
func (p *packWriter) back(off int64) error {
	p.off, p.cut = off, true
	if err := p.buf.Flush(); err != nil {
		return err
	}
	if err := p.f.Truncate(off); err != nil {
		return err
	}
	_, err := p.f.Seek(off, io.SeekStart)
	return err
}

// finish completes the pack, makes its index and gives both their names. With
// durable all is synced, first the contents, then the names; the index comes
// last, for with it the pack begins to count.
func (p *packWriter) finish(ctx context.Context, durable bool) (err error) {
	tmp := p.f.Name()
	idx := tmp + ".idx"
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(tmp), removeIfThere(idx))
		}
	}()
	sum, err := p.trailer()
	if err == nil && durable {
		err = atomicfile.Sync(p.f)
	}
	if err = errors.Join(err, p.f.Chmod(0o400), p.f.Close()); err != nil {
		return err
	}
	if err = p.writeIndex(ctx, tmp, idx, sum, durable); err != nil {
		return err
	}
	failpoint.Hit("store.pack-written")
	name := filepath.Join(p.dir, "pack-"+hex.EncodeToString(sum))
	if err = os.Rename(tmp, name+".pack"); err != nil {
		return err
	}
	failpoint.Hit("store.pack-renamed")
	if err = os.Rename(idx, name+".idx"); err != nil || !durable {
		return err
	}
	return atomicfile.SyncDir(p.dir)
}

// abort throws the pack away.
func (p *packWriter) abort() error {
	return errors.Join(p.f.Close(), os.Remove(p.f.Name()))
}

// trailer ends the file with its checksum. Where fewer or more objects came than
// were announced (a file vanished meanwhile, two are the same) the header is set
// right and the sum taken anew.
func (p *packWriter) trailer() ([]byte, error) {
	if err := p.buf.Flush(); err != nil {
		return nil, err
	}
	if len(p.objects) != p.declared || p.cut {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(p.objects)))
		if _, err := p.f.WriteAt(n[:], 8); err != nil {
			return nil, err
		}
		p.sum.Reset()
		if _, err := io.Copy(p.sum, io.NewSectionReader(p.f, 0, p.off)); err != nil {
			return nil, err
		}
	}
	sum := p.sum.Sum(nil)
	_, err := p.f.Write(sum)
	return sum, err
}

// packEncoder prepares objects for one goroutine.
type packEncoder struct {
	format snapshot.Format
	level  int
	zw     *zlib.Writer
}

// encode appends the object's form in a pack to out and returns its id too.
func (e *packEncoder) encode(out []byte, kind objectKind, data []byte) ([]byte, snapshot.ID, error) {
	h := e.format.NewHash()
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	out = objectHeader(out, kind, int64(len(data)))
	sink := writerFunc(func(b []byte) (int, error) {
		out = append(out, b...)
		return len(b), nil
	})
	var err error
	if e.zw == nil {
		e.zw, err = zlib.NewWriterLevel(sink, e.level)
	} else {
		e.zw.Reset(sink)
	}
	if err == nil {
		_, err = e.zw.Write(data)
	}
	if err == nil {
		err = e.zw.Close()
	}
	return out, snapshot.IDFrom(h.Sum(nil)), err
}

// objectHeader appends type and size: three bits and four, then seven a byte.
func objectHeader(out []byte, kind objectKind, size int64) []byte {
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		out = append(out, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(out, c)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// writeIndex writes the index of a finished pack: by go-git, which knows
// SHA-1 only, else by git itself.
func (p *packWriter) writeIndex(ctx context.Context, pack, idx string, sum []byte, durable bool) error {
	if p.repo.format == snapshot.SHA256 {
		if _, err := p.repo.out(ctx, nil, "-c", "pack.writeReverseIndex=false", "index-pack", "-o", idx, pack); err != nil {
			return err
		}
		f, err := os.Open(idx)
		if err != nil {
			return err
		}
		return syncClose(f, durable, nil)
	}
	var w idxfile.Writer
	err := w.OnHeader(uint32(len(p.objects)))
	for _, o := range p.objects {
		w.Add(plumbing.Hash(o.id.Bytes()), uint64(o.off), o.crc)
	}
	err = errors.Join(err, w.OnFooter(plumbing.Hash(sum)))
	mem, ierr := w.Index()
	if err = errors.Join(err, ierr); err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	f, err := os.OpenFile(idx, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = idxfile.NewEncoder(f).Encode(mem)
	return syncClose(f, durable, err)
}

// syncClose ends the writing of f, which went as err says.
func syncClose(f *os.File, durable bool, err error) error {
	if err == nil && durable {
		err = atomicfile.Sync(f)
	}
	return errors.Join(err, f.Close())
}

// ownPacks are the packs of the store itself: what the origin holds does not
// count, since the user may prune it there.
type ownPacks struct {
	*repository

	mu    sync.Mutex
	known map[snapshot.ID]bool // objects that this process has put in, or found in, these packs
}

// wholeTable is up to how many bytes of ids a pack index is read at once rather
// than searched.
const wholeTable = 1 << 20

// find returns which of ids lie in the packs.
func (o *ownPacks) find(ids []snapshot.ID) (map[snapshot.ID]bool, error) {
	found := map[snapshot.ID]bool{}
	rest := make([]snapshot.ID, 0, len(ids))
	o.mu.Lock()
	for _, id := range ids {
		if o.known[id] {
			found[id] = true
		} else {
			rest = append(rest, id)
		}
	}
	o.mu.Unlock()
	if len(rest) == 0 {
		return found, nil
	}
	packs, err := filepath.Glob(text.QuotePattern(filepath.Join(o.dir, "objects/pack")) + "/pack-*.idx")
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		if rest, err = o.searchIndex(p, rest, found); errors.Is(err, os.ErrNotExist) {
			continue // git gc in the store took it away just now
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if len(rest) == 0 {
			break
		}
	}
	o.remember(found)
	return found, nil
}

func (o *ownPacks) remember(ids map[snapshot.ID]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range ids {
		o.known[id] = true
	}
}

func (o *ownPacks) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.known)
}

// searchIndex looks ids up in one pack index (version 2), adds what it holds to
// found and returns the others.
func (o *ownPacks) searchIndex(path string, ids []snapshot.ID, found map[snapshot.ID]bool) ([]snapshot.ID, error) {
	f, err := os.Open(path)
	if err != nil {
		return ids, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	var head [8 + 256*4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return ids, err
	}
	if string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return ids, nil // version 1: an object more than needed does no harm
	}
	fan := func(i int) int { return int(binary.BigEndian.Uint32(head[8+i*4:])) }
	width := o.format.Size()
	var table io.ReaderAt = f
	base := int64(len(head))
	if n := fan(255) * width; n <= wholeTable {
		b := make([]byte, n)
		if _, err := io.ReadFull(f, b); err != nil {
			return ids, err
		}
		table, base = bytes.NewReader(b), 0
	}
	rest := ids[:0:0]
	name := make([]byte, width)
	for _, id := range ids {
		first := id.Bytes()[0]
		lo, hi := 0, fan(int(first))
		if first > 0 {
			lo = fan(int(first) - 1)
		}
		if lo > hi {
			return ids, errors.New("damaged pack index")
		}
		var rerr error
		at := func(i int) []byte {
			if _, err := table.ReadAt(name, base+int64(i)*int64(width)); err != nil && rerr == nil {
				rerr = err
			}
			return name
		}
		i := lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(at(lo+i), id.Bytes()) >= 0 })
		if i < hi && bytes.Equal(at(i), id.Bytes()) {
			found[id] = true
		} else {
			rest = append(rest, id)
		}
		if rerr != nil {
			return ids, rerr
		}
	}
	return rest, nil
}
