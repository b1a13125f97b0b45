package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
)

// Index is git's index file, read once and kept as the bytes it was: entries,
// paths and object ids are views into them. It reads versions 2, 3 and 4 with
// sha1 and sha256. A split index is joined with its shared index while reading.
// The format is git's Documentation/gitformat-index.txt.
type Index struct {
	Version uint32
	ModTime time.Time // of the file; an entry whose mtime is not older is racily clean. Zero for a missing file
	Sparse  bool      // some entries are whole directories (mode 040000, path ends with a slash)
	Split   bool      // the file was a split index

	data     string
	hashSize int
	starts   []uint32 // where each entry begins in data, and where the last one ends
	names    string   // version 4 only: all paths, one after the other
	nameEnds []uint32 // version 4 only: where each path ends in names
	exts     []indexExt
}

// IndexEntry is one entry of an index. Path and OID (raw bytes, not hex) are
// parts of the index's own memory.
type IndexEntry struct {
	Path         superqode.RelPath
	OID          string
	Mode         uint32 // 0100644, 0100755, 0120000, 0160000 (a submodule) or 0040000 (a sparse directory)
	Stage        uint8  // 0, or 1 to 3 for an unmerged path
	AssumeValid  bool
	SkipWorktree bool
	IntentToAdd  bool
	Stat         IndexStat
}

// IndexStat is what the index remembers of a file's lstat: every field cut to 32
// bits. All zero means that git has to read the file.
type IndexStat struct {
	CtimeSec, CtimeNsec uint32
	MtimeSec, MtimeNsec uint32
	Dev, Ino            uint32
	UID, GID            uint32
	Size                uint32
}

type indexExt struct {
	sig        string
	start, end int // of its data, without the header
}

// ErrIndexCorrupt means that the bytes are no index that git would read.
var ErrIndexCorrupt = errors.New("index file corrupt")

const (
	indexHeader   = 12
	entryFixed    = 40
	flagValid     = 0x8000
	flagExtended  = 0x4000
	flagSkip      = 0x4000 // in the second word
	flagIntent    = 0x2000 // in the second word
	flagNameMask  = 0x0fff
	maxIndexBytes = 1<<32 - 1
)

// ReadIndex reads the index file at path. format is the repository's object
// format, "sha1" or "sha256". A missing file is an empty index. An error wraps
// ErrIndexCorrupt when the file cannot be understood.
func ReadIndex(path, format string) (*Index, error) {
	data, mod, err := readString(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{Version: 2, hashSize: hashSize(format)}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := parseIndex(data, hashSize(format))
	if err == nil && x.Split {
		x, err = x.joinShared(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x.ModTime = mod
	return x, nil
}

func hashSize(format string) int {
	if format == "sha256" {
		return 32
	}
	return 20
}

// readString reads a whole file into a string without a second copy.
func readString(path string) (string, time.Time, error) {
	// a FIFO, should one be there, must not be waited for
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", time.Time{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", time.Time{}, err
	}
	if !st.Mode().IsRegular() {
		return "", time.Time{}, fmt.Errorf("%s: %w: not a regular file", path, ErrIndexCorrupt)
	}
	if st.Size() > maxIndexBytes {
		return "", time.Time{}, fmt.Errorf("%s: %w: larger than 4 GiB", path, ErrIndexCorrupt)
	}
	var b strings.Builder
	b.Grow(int(st.Size()))
	_, err = io.Copy(&b, f)
	return b.String(), st.ModTime(), err
}

// Len returns the number of entries.
func (x *Index) Len() int { return max(len(x.starts)-1, 0) }

// Path returns the path of entry i.
func (x *Index) Path(i int) superqode.RelPath {
	if x.Version == 4 {
		from := uint32(0)
		if i > 0 {
			from = x.nameEnds[i-1]
		}
		return superqode.RelPath(x.names[from:x.nameEnds[i]])
	}
	at := int(x.starts[i]) + entryFixed + x.hashSize
	flags := be16(x.data, at)
	at += 2
	if flags&flagExtended != 0 {
		at += 2
	}
	n := int(flags & flagNameMask)
	if n == flagNameMask {
		n = strings.IndexByte(x.data[at:], 0)
	}
	return superqode.RelPath(x.data[at : at+n])
}

// At decodes entry i.
func (x *Index) At(i int) IndexEntry {
	at, d := int(x.starts[i]), x.data
	e := IndexEntry{Path: x.Path(i), Stat: statAt(d, at), Mode: be32(d, at+24),
		OID: d[at+entryFixed : at+entryFixed+x.hashSize]}
	at += entryFixed + x.hashSize
	flags := be16(d, at)
	e.AssumeValid, e.Stage = flags&flagValid != 0, uint8(flags>>12&3)
	if flags&flagExtended != 0 {
		more := be16(d, at+2)
		e.SkipWorktree, e.IntentToAdd = more&flagSkip != 0, more&flagIntent != 0
	}
	return e
}

func statAt(d string, at int) IndexStat {
	return IndexStat{
		CtimeSec: be32(d, at), CtimeNsec: be32(d, at+4), MtimeSec: be32(d, at+8), MtimeNsec: be32(d, at+12),
		Dev: be32(d, at+16), Ino: be32(d, at+20), UID: be32(d, at+28), GID: be32(d, at+32), Size: be32(d, at+36),
	}
}

// Entries yields every entry in the index's order: by the bytes of the path,
// then by stage.
func (x *Index) Entries() iter.Seq2[int, IndexEntry] {
	return func(yield func(int, IndexEntry) bool) {
		for i := range x.Len() {
			if !yield(i, x.At(i)) {
				return
			}
		}
	}
}

// Search returns the position of the first entry whose path is not less than
// path, and whether that entry has exactly this path (at any stage).
func (x *Index) Search(path superqode.RelPath) (int, bool) {
	i := sort.Search(x.Len(), func(i int) bool { return x.Path(i) >= path })
	return i, i < x.Len() && x.Path(i) == path
}

// SearchDir returns the position of the first entry below the directory dir
// (named without a trailing slash), and whether there is one. A sparse directory
// counts as being below itself.
func (x *Index) SearchDir(dir superqode.RelPath) (int, bool) {
	below := func(p superqode.RelPath) bool { return len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir }
	i := sort.Search(x.Len(), func(i int) bool {
		p := x.Path(i)
		if len(p) <= len(dir) || p[:len(dir)] != dir {
			return p > dir
		}
		return p[len(dir)] >= '/'
	})
	return i, i < x.Len() && below(x.Path(i))
}

func be32(s string, i int) uint32 {
	_ = s[i+3]
	return uint32(s[i])<<24 | uint32(s[i+1])<<16 | uint32(s[i+2])<<8 | uint32(s[i+3])
}

func be16(s string, i int) uint16 {
	_ = s[i+1]
	return uint16(s[i])<<8 | uint16(s[i+1])
}
