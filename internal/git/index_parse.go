package git

import (
	"fmt"
	"strings"
)

// parseIndex checks the whole structure once, so that the accessors need no
// checks: entry bounds, order, extension bounds. The trailing hash is not
// checked here (git does not either); see Index.Verify.
func parseIndex(data string, hashSize int) (*Index, error) {
	if len(data) < indexHeader+hashSize || data[:4] != "DIRC" {
		return nil, fmt.Errorf("%w: no header", ErrIndexCorrupt)
	}
	x := &Index{Version: be32(data, 4), data: data, hashSize: hashSize}
	if x.Version < 2 || x.Version > 4 {
		return nil, fmt.Errorf("%w: version %d", ErrIndexCorrupt, x.Version)
	}
	n := int(be32(data, 8))
	if n > (len(data)-indexHeader)/(entryFixed+hashSize+2) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrIndexCorrupt, n, len(data))
	}
	end, err := x.parseEntries(n)
	if err != nil {
		return nil, err
	}
	if err := x.parseExtensions(end); err != nil {
		return nil, err
	}
	return x, x.checkOrder()
}

// parseEntries finds where each entry begins and, in version 4, puts the paths
// together again. It returns where the entries end.
func (x *Index) parseEntries(n int) (int, error) {
	at, limit := indexHeader, len(x.data)-x.hashSize
	x.starts = make([]uint32, 0, n+1)
	var names []byte
	if x.Version == 4 {
		x.nameEnds = make([]uint32, 0, n)
	}
	prev := 0 // where the path of the entry before begins in names
	for i := range n {
		x.starts = append(x.starts, uint32(at))
		name := at + entryFixed + x.hashSize + 2
		if name > limit {
			return 0, fmt.Errorf("%w: entry %d is cut off", ErrIndexCorrupt, i)
		}
		flags := be16(x.data, name-2)
		if flags&flagExtended != 0 {
			if name += 2; name > limit || x.Version < 3 {
				return 0, fmt.Errorf("%w: entry %d has flags that version %d does not know", ErrIndexCorrupt,
					i, x.Version)
			}
		}
		if x.Version == 4 {
			strip, used := varint(x.data[name:limit])
			name += used
			nul := strings.IndexByte(x.data[name:limit], 0)
			if used == 0 || nul < 0 || strip > len(names)-prev || len(names) > maxIndexBytes/2 {
				return 0, fmt.Errorf("%w: path of entry %d", ErrIndexCorrupt, i)
			}
			kept := len(names) - strip
			from := len(names)
			names = append(names, names[prev:kept]...)
			names = append(names, x.data[name:name+nul]...)
			prev = from
			x.nameEnds = append(x.nameEnds, uint32(len(names)))
			at = name + nul + 1
			continue
		}
		length := int(flags & flagNameMask)
		if nul := strings.IndexByte(x.data[name:limit], 0); nul < 0 || length == flagNameMask && nul < length ||
			length != flagNameMask && nul != length {
			return 0, fmt.Errorf("%w: path of entry %d", ErrIndexCorrupt, i)
		} else {
			length = nul
		}
		if at += (name - at + length + 8) &^ 7; at > limit {
			return 0, fmt.Errorf("%w: entry %d is cut off", ErrIndexCorrupt, i)
		}
	}
	x.starts, x.names = append(x.starts, uint32(at)), string(names)
	return at, nil
}

// varint decodes git's offset varint and returns the value and the bytes used,
// 0 when it is cut off or absurd.
func varint(s string) (val, used int) {
	for i := 0; i < len(s) && i < 5; i++ {
		c := s[i]
		val = val<<7 + int(c&127)
		if c&128 == 0 {
			return val, i + 1
		}
		val++
	}
	return 0, 0
}

func (x *Index) parseExtensions(at int) error {
	limit := len(x.data) - x.hashSize
	for at < limit {
		if limit-at < 8 {
			return fmt.Errorf("%w: an extension is cut off", ErrIndexCorrupt)
		}
		e := indexExt{sig: x.data[at : at+4], start: at + 8}
		size := int(be32(x.data, at+4))
		if size > limit-e.start {
			return fmt.Errorf("%w: extension %q is cut off", ErrIndexCorrupt, e.sig)
		}
		e.end = e.start + size
		switch {
		case e.sig == "link":
			x.Split = true
		case e.sig == "sdir":
			x.Sparse = true
		case e.sig[0] < 'A' || e.sig[0] > 'Z': // git's rule: these must be understood
			return fmt.Errorf("%w: unknown extension %q", ErrIndexCorrupt, e.sig)
		}
		x.exts, at = append(x.exts, e), e.end
	}
	return nil
}

// checkOrder holds what Search relies on. The replaced entries of a split index
// have no path; they are checked after the join.
func (x *Index) checkOrder() error {
	if x.Split {
		return nil
	}
	prev, prevStage := "", uint8(0)
	for i := range x.Len() {
		p, stage := string(x.Path(i)), x.stage(i)
		if p == "" || p < prev || p == prev && stage <= prevStage {
			return fmt.Errorf("%w: entry %d (%q) is out of order", ErrIndexCorrupt, i, p)
		}
		prev, prevStage = p, stage
	}
	return nil
}

func (x *Index) stage(i int) uint8 {
	return uint8(be16(x.data, int(x.starts[i])+entryFixed+x.hashSize) >> 12 & 3)
}
