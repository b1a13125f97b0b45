package snapshot

import (
	"bufio"
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

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
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
	store    *Store
	dir      string // …/objects/pack
	level    int    // of zlib
	declared int    // objects announced in the header
	f        *os.File
	buf      *bufio.Writer
	sum      hash.Hash // over all bytes so far
	off      int64
	objects  []packedObject
	seen     map[ID]bool
	cut      bool // bytes were taken back: sum is of more than there is
}

type packedObject struct {
	id  ID
	off int64
	crc uint32
}

// newPack starts a pack of about count objects in an objects folder.
func (s *Store) newPack(objects string, level, count int) (*packWriter, error) {
	dir := filepath.Join(objects, "pack")
	f, err := os.CreateTemp(dir, "tmp_pack_") // the name that git's gc knows as rubbish
	if err != nil {
		return nil, err
	}
	p := &packWriter{store: s, dir: dir, level: level, declared: count, f: f, buf: bufio.NewWriterSize(f, 256<<10), sum: s.format.newHash(), seen: map[ID]bool{}}
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
func (p *packWriter) add(id ID, encoded []byte) error {
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
func (p *packWriter) stream(size int64, r io.Reader) (ID, error) {
	crc, off := crc32.NewIEEE(), p.off
	sink := writerFunc(func(b []byte) (int, error) {
		crc.Write(b)
		return len(b), p.write(b)
	})
	if _, err := sink(objectHeader(nil, blobObject, size)); err != nil {
		return ID{}, err
	}
	zw, err := zlib.NewWriterLevel(sink, p.level)
	if err != nil {
		return ID{}, err
	}
	h := p.store.format.NewBlobHash(size)
	both := io.MultiWriter(zw, h)
	n, err := io.CopyN(both, r, size)
	if err == io.EOF {
		_, err = io.CopyN(both, zeros{}, size-n)
	}
	if err != nil {
		return ID{}, err
	}
	if err := zw.Close(); err != nil {
		return ID{}, err
	}
	id := IDFrom(h.Sum(nil))
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
		err = p.f.Sync()
	}
	if err = errors.Join(err, p.f.Chmod(0o400), p.f.Close()); err != nil {
		return err
	}
	if err = p.store.writePackIndex(ctx, tmp, idx, sum, p.objects, durable); err != nil {
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
	format Format
	level  int
	zw     *zlib.Writer
}

// encode appends the object's form in a pack to out and returns its id too.
func (e *packEncoder) encode(out []byte, kind objectKind, data []byte) ([]byte, ID, error) {
	h := e.format.newHash()
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
	return out, IDFrom(h.Sum(nil)), err
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
