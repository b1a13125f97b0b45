package git

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// joinShared turns a split index into a whole one of version 2 or 3: the shared
// file's entries, without the deleted ones, with the replaced ones, and with
// those that were added. git's own way to do that (update-index
// --no-split-index) would touch the shared file's time in the origin.
func (x *Index) joinShared(path string) (*Index, error) {
	link := ""
	for _, e := range x.exts {
		if e.sig == "link" {
			link = x.data[e.start:e.end]
		}
	}
	if len(link) < x.hashSize {
		return nil, fmt.Errorf("%w: link extension", ErrIndexCorrupt)
	}
	base := &Index{Version: 2, hashSize: x.hashSize}
	if oid := link[:x.hashSize]; strings.Trim(oid, "\x00") != "" {
		shared := filepath.Join(filepath.Dir(path), "sharedindex."+hex.EncodeToString([]byte(oid)))
		data, _, err := readString(shared)
		if err != nil {
			return nil, fmt.Errorf("shared index: %w", err)
		}
		if base, err = parseIndex(data, x.hashSize); err != nil {
			return nil, fmt.Errorf("%s: %w", shared, err)
		}
		if base.Split {
			return nil, fmt.Errorf("%w: shared index is split itself", ErrIndexCorrupt)
		}
	}
	deleted, rest, err := ewah(link[x.hashSize:], base.Len())
	if err != nil {
		return nil, err
	}
	replaced, _, err := ewah(rest, base.Len())
	if err != nil {
		return nil, err
	}
	entries, err := x.merge(base, deleted, replaced)
	if err != nil {
		return nil, err
	}
	return x.rebuild(entries)
}

// rawEntry is one entry on its way into a rebuilt index: its path, and its bytes
// in the index it comes from (fixed fields, id and flags).
type rawEntry struct {
	path string
	raw  string
}

func (x *Index) raw(i int) rawEntry {
	return rawEntry{string(x.Path(i)), x.data[x.starts[i]:x.starts[i+1]]}
}

func (r rawEntry) flags(hashSize int) uint16 { return be16(r.raw, entryFixed+hashSize) }

func (x *Index) merge(base *Index, deleted, replaced []int) ([]rawEntry, error) {
	if len(replaced) > x.Len() {
		return nil, fmt.Errorf("%w: link extension replaces too much", ErrIndexCorrupt)
	}
	all := make([]rawEntry, 0, base.Len()+x.Len()-len(replaced))
	for i := range base.Len() {
		all = append(all, base.raw(i))
	}
	for k, pos := range replaced {
		if x.Path(k) != "" {
			return nil, fmt.Errorf("%w: a replaced entry has a path", ErrIndexCorrupt)
		}
		all[pos].raw = x.raw(k).raw
	}
	added := make(map[string]bool, x.Len()-len(replaced))
	for i := len(replaced); i < x.Len(); i++ {
		all = append(all, x.raw(i))
		added[key(x.raw(i), x.hashSize)] = true
	}
	gone := make(map[int]bool, len(deleted))
	for _, pos := range deleted {
		gone[pos] = true
	}
	n, kept := base.Len(), all[:0]
	for i, e := range all {
		if i < n && (gone[i] || added[key(e, x.hashSize)]) {
			continue // deleted, or an added entry takes its place
		}
		kept = append(kept, e)
	}
	slices.SortFunc(kept, func(a, b rawEntry) int {
		return cmp.Or(strings.Compare(a.path, b.path),
			cmp.Compare(a.flags(x.hashSize)&0x3000, b.flags(x.hashSize)&0x3000))
	})
	return kept, nil
}

func key(e rawEntry, hashSize int) string {
	return e.path + "\x00" + string(byte('0'+e.flags(hashSize)>>12&3))
}

// rebuild writes entries and x's other extensions down as one index and parses
// that.
func (x *Index) rebuild(entries []rawEntry) (*Index, error) {
	var b bytes.Buffer
	version := uint32(2)
	b.WriteString("DIRC")
	be := binary.BigEndian
	b.Write(be.AppendUint32(be.AppendUint32(nil, version), uint32(len(entries))))
	for _, e := range entries {
		start := b.Len()
		flags := e.flags(x.hashSize)&^flagNameMask | uint16(min(len(e.path), flagNameMask))
		b.WriteString(e.raw[:entryFixed+x.hashSize])
		b.Write(be.AppendUint16(nil, flags))
		if flags&flagExtended != 0 {
			version = 3
			b.WriteString(e.raw[entryFixed+x.hashSize+2 : entryFixed+x.hashSize+4])
		}
		b.WriteString(e.path)
		size := (b.Len() - start + 8) &^ 7
		b.Write(make([]byte, start+size-b.Len()))
	}
	for _, e := range x.exts {
		switch e.sig {
		case "link", "EOIE", "IEOT", "UNTR", "FSMN":
		default:
			b.WriteString(x.data[e.start-8 : e.end])
		}
	}
	be.PutUint32(b.Bytes()[4:], version)
	sum := make([]byte, x.hashSize)
	if !x.skipsHash() {
		h := x.newHash()
		h.Write(b.Bytes())
		sum = h.Sum(nil)
	}
	b.Write(sum)
	whole, err := parseIndex(b.String(), x.hashSize)
	if err != nil {
		return nil, err
	}
	whole.Split = true
	return whole, nil
}

// ewah reads one compressed bitmap (git's ewah/ewah_bitmap.c): the number of
// bits, the number of words, the words, and the position of the last marker. It
// returns the positions of the set bits, which must all be below limit, and what
// follows the bitmap. An empty s is an empty bitmap.
func ewah(s string, limit int) (set []int, rest string, err error) {
	bad := fmt.Errorf("%w: bitmap of the link extension", ErrIndexCorrupt)
	if s == "" {
		return nil, "", nil
	}
	if len(s) < 12 {
		return nil, "", bad
	}
	words := int(be32(s, 4))
	if words > (len(s)-12)/8 {
		return nil, "", bad
	}
	word := func(i int) uint64 { return uint64(be32(s, 8+8*i))<<32 | uint64(be32(s, 12+8*i)) }
	pos := 0
	for i := 0; i < words; {
		marker := word(i)
		i++
		run, literals := int(marker>>1&0xffffffff), int(marker>>33)
		if marker&1 != 0 {
			if run > (limit-pos)/64 {
				return nil, "", bad
			}
			for b := range run * 64 {
				set = append(set, pos+b)
			}
		}
		pos += run * 64
		if literals > words-i {
			return nil, "", bad
		}
		for ; literals > 0; literals-- {
			w := word(i)
			for b := range 64 {
				if w>>b&1 == 0 {
					continue
				}
				if pos+b >= limit {
					return nil, "", bad
				}
				set = append(set, pos+b)
			}
			pos, i = pos+64, i+1
		}
	}
	return set, s[12+8*words:], nil
}
