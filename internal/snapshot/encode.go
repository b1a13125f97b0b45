package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// The file format: fileMagic; root, format, time and numbers; one record an
// entry, its path without what it shares with the entry before; a CRC-32C of all
// that. The sum finds torn and flipped bytes; it is no proof against forgery.
const fileMagic = "superqode snapshot file 1\n"

// minRecord is the size of the smallest record: a bound for the number of them.
const minRecord = 14

// maxText is how much memory the paths get at once, whatever the file says; the
// paths of very deep trees can be much longer together than their file is.
const maxText = 64 << 20

// ErrCorrupt means that a file holds no snapshot that Save wrote.
var ErrCorrupt = errors.New("snapshot file is corrupt")

// Save writes the snapshot to path, durably.
func (s *Snapshot) Save(path string) error { return s.SaveAs(path, atomicfile.Durable) }

// SaveAs writes the snapshot to path, all or nothing, and waits for as much.
func (s *Snapshot) SaveAs(path string, wait atomicfile.Wait) error {
	if s.File != "" && os.Link(s.File, path) == nil {
		return nil
	}
	return wait.WriteFunc(path, 0o600, func(w io.Writer) error {
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		bw := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
		if err := s.encode(bw); err != nil {
			return err
		}
		if err := bw.Flush(); err != nil {
			return err
		}
		_, err := w.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
		return err
	})
}

func (s *Snapshot) encode(w *bufio.Writer) error {
	text := 0
	for i := range s.Entries {
		text += len(s.Entries[i].Path) + len(s.Entries[i].Link)
	}
	b := append(make([]byte, 0, 1024), fileMagic...)
	b = appendBytes(b, s.Root)
	b = append(b, byte(s.Format))
	b = binary.AppendVarint(b, s.Taken.Unix())
	b = binary.AppendUvarint(b, uint64(s.Taken.Nanosecond()))
	b = binary.AppendUvarint(b, uint64(len(s.Entries)))
	b = binary.AppendUvarint(b, uint64(text))
	last := superqode.RelPath("")
	for i := range s.Entries {
		e := &s.Entries[i]
		shared := sharedPrefix(last, e.Path)
		if e.Path <= last || !isCleanFrom(string(e.Path), shared) || e.Kind < File || e.Kind > Other || e.Size < 0 {
			return fmt.Errorf("entry %q is out of order or invalid", e.Path)
		}
		last = e.Path
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendBytes(b, string(e.Path[shared:]))
		b = append(b, byte(e.Kind))
		for _, v := range []uint64{uint64(e.Perm), uint64(e.Size), e.Stat.Dev, e.Stat.Ino, uint64(e.Stat.UID), uint64(e.Stat.GID), uint64(e.Stat.Nlink)} {
			b = binary.AppendUvarint(b, v)
		}
		b = binary.AppendVarint(b, e.Stat.Mtime)
		b = binary.AppendVarint(b, e.Stat.Ctime-e.Stat.Mtime)
		b = appendBytes(b, e.Link)
		b = append(append(b, byte(len(e.ID.Bytes()))), e.ID.Bytes()...)
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	_, err := w.Write(b)
	return err
}

// isCleanFrom reports whether a path is one that a scan can make: relative, no
// empty name, no "." or "..", no NUL. The first n bytes are those of a path that
// was looked at before.
func isCleanFrom(p string, n int) bool {
	if p == "" || strings.IndexByte(p[n:], 0) >= 0 {
		return false
	}
	for rest, more := p[strings.LastIndexByte(p[:n], '/')+1:], true; more; {
		var name string
		if name, rest, more = strings.Cut(rest, "/"); name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}

func sharedPrefix(a, b superqode.RelPath) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Load reads what Save wrote. An error wraps ErrCorrupt when the file was cut or
// changed.
func Load(path string) (*Snapshot, error) {
	data, err := atomicfile.Read(path)
	if err != nil {
		return nil, err
	}
	s, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Decode reads the bytes that Save wrote. An error wraps ErrCorrupt.
func Decode(data []byte) (*Snapshot, error) {
	body := len(data) - crc32.Size
	if body < len(fileMagic) || string(data[:len(fileMagic)]) != fileMagic ||
		crc32.Checksum(data[:body], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[body:]) {
		return nil, ErrCorrupt
	}
	d := &decoder{b: data[len(fileMagic):body]}
	s := &Snapshot{Root: string(d.bytes())}
	s.Format = Format(d.byte())
	sec, nsec := d.varint(), d.uvarint()
	s.Taken = time.Unix(sec, int64(nsec))
	n, text := d.uvarint(), d.uvarint()
	if d.bad || nsec >= 1e9 || n > uint64(len(d.b)/minRecord) {
		return nil, ErrCorrupt
	}
	s.Entries = make([]Entry, n)
	d.text.Grow(int(min(text, maxText)))
	last := ""
	for i := range s.Entries {
		d.entry(&s.Entries[i], last)
		if d.bad || string(s.Entries[i].Path) <= last {
			return nil, ErrCorrupt
		}
		last = string(s.Entries[i].Path)
	}
	if len(d.b) != 0 {
		return nil, ErrCorrupt
	}
	return s, nil
}

// decoder reads fields off the front of b; bad is set when one is not there.
// All strings of a snapshot are parts of one, which usually costs one allocation.
type decoder struct {
	b    []byte
	bad  bool
	text strings.Builder
}

func (d *decoder) entry(e *Entry, last string) {
	shared, rest := d.uvarint(), d.bytes()
	if shared > uint64(len(last)) {
		d.bad = true
		return
	}
	e.Path = superqode.RelPath(d.keep(last[:shared], rest))
	e.Kind = Kind(d.byte())
	e.Perm, e.Size = uint32(d.uvarint()), int64(d.uvarint())
	e.Stat.Dev, e.Stat.Ino = d.uvarint(), d.uvarint()
	e.Stat.UID, e.Stat.GID, e.Stat.Nlink = uint32(d.uvarint()), uint32(d.uvarint()), uint32(d.uvarint())
	e.Stat.Mtime = d.varint()
	e.Stat.Ctime = e.Stat.Mtime + d.varint()
	e.Link = d.keep("", d.bytes())
	if id := d.take(uint64(d.byte())); len(id) > 0 {
		e.ID = IDFrom(id)
		d.bad = d.bad || e.ID.IsZero()
	}
	d.bad = d.bad || !isCleanFrom(string(e.Path), int(shared)) || e.Kind < File || e.Kind > Other || e.Size < 0
}

func (d *decoder) keep(prefix string, rest []byte) string {
	start := d.text.Len()
	d.text.WriteString(prefix)
	d.text.Write(rest)
	return d.text.String()[start:]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	return advanced(d, v, n)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	return advanced(d, v, n)
}

func advanced[T uint64 | int64](d *decoder, v T, n int) T {
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}
