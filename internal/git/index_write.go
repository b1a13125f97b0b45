package git

import (
	"crypto/sha1" //nolint:gosec // git's checksum of the index, not a security boundary
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
)

// Verify checks the trailing hash over the whole file. A hash of zeros was
// skipped by its writer (index.skipHash) and holds nothing to check.
func (x *Index) Verify() error {
	if x.data == "" || x.skipsHash() {
		return nil
	}
	h, body, buf := x.newHash(), x.data[:len(x.data)-x.hashSize], make([]byte, 1<<15)
	for len(body) > 0 {
		n := copy(buf, body)
		h.Write(buf[:n]) // hash.Hash never returns an error
		body = body[n:]
	}
	if string(h.Sum(nil)) != x.data[len(x.data)-x.hashSize:] {
		return fmt.Errorf("%w: the checksum does not match", ErrIndexCorrupt)
	}
	return nil
}

func (x *Index) skipsHash() bool {
	return strings.Trim(x.data[len(x.data)-x.hashSize:], "\x00") == ""
}

func (x *Index) newHash() hash.Hash {
	if x.hashSize == sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// dropped names the extensions that describe one place and one moment: the
// untracked cache holds stat data of the origin's folders, the monitor's token
// belongs to the origin's daemon. What the copy's monitor is to begin with is written
// anew, see Write.
func dropped(sig string) bool { return sig == "UNTR" || sig == "FSMN" }

// Write writes the index to path with every entry's stat data replaced by what
// stat returns for its position. UNTR and FSMN are left out, and then EOIE and
// IEOT too, whose offsets and hash would no longer hold. The file is made as
// path+".lock", which is git's own lock on it, and renamed; it is not synced,
// for git does not sync an index either.
func (x *Index) Write(path string, stat func(i int) IndexStat) error {
	return x.WriteMonitored(path, "", func(i int) (IndexStat, bool) { return stat(i), false })
}

// WriteMonitored is Write for a work tree that a file system monitor watches: git asks it
// what was changed since token, and looks at what it names and at the entries that stat
// does not call clean. A sparse index gets no token.
func (x *Index) WriteMonitored(path, token string, stat func(i int) (st IndexStat, clean bool)) (err error) {
	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // closed already on the last step; the first error is the one to tell
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = x.encode(f, token, stat); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (x *Index) encode(w io.Writer, token string, stat func(i int) (IndexStat, bool)) error {
	o := &indexWriter{w: w, buf: make([]byte, 0, 1<<18)}
	if x.data == "" { // the file was missing: an empty index
		o.h = x.newHash()
		o.add("DIRC\x00\x00\x00\x02\x00\x00\x00\x00")
		return o.finish(x.hashSize)
	}
	if !x.skipsHash() {
		o.h = x.newHash()
	}
	o.add(x.data[:indexHeader])
	doubtful := make([]uint64, (x.Len()+63)/64)
	for i := range x.Len() {
		st, clean := stat(i)
		o.entry(x.data[x.starts[i]:x.starts[i+1]], st)
		if !clean {
			doubtful[i/64] |= 1 << (i % 64)
		}
	}
	monitored := token != "" && !x.Sparse
	drop := monitored
	for _, e := range x.exts {
		drop = drop || dropped(e.sig)
	}
	for _, e := range x.exts {
		if dropped(e.sig) || drop && (e.sig == "EOIE" || e.sig == "IEOT") {
			continue
		}
		o.add(x.data[e.start-8 : e.end])
	}
	if monitored {
		o.add(string(monitorExtension(token, x.Len(), doubtful)))
	}
	return o.finish(x.hashSize)
}

// monitorExtension is FSMN of version 2: the token, and a bitmap of the entries that
// have to be looked at whatever the monitor says. Each of its words stands for itself,
// behind one marker; see ewah.
func monitorExtension(token string, entries int, doubtful []uint64) []byte {
	be := binary.BigEndian
	bits := be.AppendUint32(nil, uint32(entries))
	bits = be.AppendUint32(bits, uint32(1+len(doubtful)))
	bits = be.AppendUint64(bits, uint64(len(doubtful))<<33)
	for _, word := range doubtful {
		bits = be.AppendUint64(bits, word)
	}
	bits = be.AppendUint32(bits, 0) // where the last marker is
	data := append(be.AppendUint32(nil, 2), token+"\x00"...)
	data = append(be.AppendUint32(data, uint32(len(bits))), bits...)
	return append(be.AppendUint32([]byte("FSMN"), uint32(len(data))), data...)
}

// indexWriter gathers bytes, hashes and writes them in large pieces. The first
// error stays and is returned by finish.
type indexWriter struct {
	w   io.Writer
	h   hash.Hash // nil: the hash is skipped
	buf []byte
	err error
}

func (o *indexWriter) add(s string) {
	for len(s) > 0 {
		if len(o.buf) == cap(o.buf) {
			o.flush()
		}
		n := min(len(s), cap(o.buf)-len(o.buf))
		o.buf, s = append(o.buf, s[:n]...), s[n:]
	}
}

func (o *indexWriter) entry(raw string, st IndexStat) {
	var b [entryFixed]byte
	copy(b[:], raw)
	be := binary.BigEndian
	be.PutUint32(b[0:], st.CtimeSec)
	be.PutUint32(b[4:], st.CtimeNsec)
	be.PutUint32(b[8:], st.MtimeSec)
	be.PutUint32(b[12:], st.MtimeNsec)
	be.PutUint32(b[16:], st.Dev)
	be.PutUint32(b[20:], st.Ino)
	be.PutUint32(b[28:], st.UID)
	be.PutUint32(b[32:], st.GID)
	be.PutUint32(b[36:], st.Size)
	if cap(o.buf)-len(o.buf) < entryFixed {
		o.flush()
	}
	o.buf = append(o.buf, b[:]...)
	o.add(raw[entryFixed:])
}

func (o *indexWriter) flush() {
	if o.h != nil {
		o.h.Write(o.buf)
	}
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

func (o *indexWriter) finish(hashSize int) error {
	o.flush()
	sum := make([]byte, hashSize)
	if o.h != nil {
		sum = o.h.Sum(nil)
	}
	if o.err == nil {
		_, o.err = o.w.Write(sum)
	}
	return o.err
}
