// Package snapshot records what a directory holds at one moment, and compares two
// records. Package store keeps contents and package treecopy writes them out.
//
// A Snapshot is a sorted list of entries. Its digest covers path bytes, type,
// permission bits, size, link target and content id of every entry, each framed
// by its length, and nothing else: owner, times and inode numbers are kept
// beside each entry as a cache key but do not count. Contents are raw bytes,
// never what a clean, smudge or end-of-line filter would make of them. Sockets,
// FIFOs and devices are recorded and never opened.
package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

// Kind is the type of one entry.
type Kind uint8

// The kinds. The zero value is invalid.
const (
	File  Kind = iota + 1 // a regular file
	Link                  // a symbolic link, never followed
	Dir                   // a directory
	Other                 // a socket, FIFO or device: recorded, never opened
)

// Stat is what identifies one state of one file on one machine without reading
// it. It is a cache key and no part of a digest.
type Stat struct {
	Dev, Ino uint64
	Mtime    int64 // nanoseconds since 1970
	Ctime    int64 // nanoseconds since 1970
	UID, GID uint32
	Nlink    uint32
}

// Entry is one path of a snapshot.
type Entry struct {
	Path superqode.RelPath // raw bytes relative to the root, slash-separated; the root itself is no entry
	Kind Kind
	Perm uint32 // permission, setuid, setgid and sticky bits: st_mode & 07777
	Size int64  // bytes of a file or of a link's target, 0 for other kinds
	Link string // a link's target; of a special file what it is (see specialName)
	ID   ID     // content id of a file or a link's target; zero while not known
	Stat Stat
}

// LargeFile is the size in bytes from which a file is in no patch and in no commit of the
// store: git would hold both sides of it in memory, and one with holes would
// lose them. Such a file is never read for a copy of it, but moved.
const LargeFile = 100 << 20

// MostRead is how many bytes of what a session made are read, and copied, when it ends:
// nobody waits for what a program wrote. The largest files beyond it are large as well.
const MostRead = 1 << 30

// IsLarge reports whether the entry, which may be nil, is a file too large for a
// commit of the store, or one that was not read; see NameUnlike.
func (e *Entry) IsLarge() bool {
	return e != nil && e.Kind == File && (e.Size > LargeFile || e.ID.isUnlike())
}

// NameUnlike gives files whose content is not known an id of their own, which is no
// hash of their bytes: each large one that is not the size of a large file of base,
// and the largest of the others beyond MostRead that are not the size of base's file
// at their path. They differ from all that base holds, so nobody has to read them, and
// their holes, to the end.
func (s *Snapshot) NameUnlike(base *Snapshot) {
	sizes := map[int64]bool{}
	for i := range base.Entries {
		if e := &base.Entries[i]; e.IsLarge() {
			sizes[e.Size] = true
		}
	}
	var unread []Entry
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Kind != File || !e.ID.IsZero() || e.IsLarge() && sizes[e.Size] {
			continue
		}
		if old := base.Find(e.Path); e.IsLarge() || old == nil || old.Kind != File || old.Size != e.Size {
			unread = append(unread, *e)
		}
	}
	for _, e := range TooMuch(unread, LargeFile, MostRead) {
		s.Find(e.Path).ID = s.Format.unlike(e.Stat)
	}
}

// TooMuch returns the files among entries that are larger than most bytes, and the
// largest of the others until what is left has no more than total.
func TooMuch(entries []Entry, most, total int64) []Entry {
	var files []Entry
	for _, e := range entries {
		if e.Kind == File {
			files = append(files, e)
			total -= e.Size
		}
	}
	slices.SortStableFunc(files, func(a, b Entry) int { return cmp.Compare(b.Size, a.Size) })
	n := 0
	for ; n < len(files) && (total < 0 || files[n].Size > most); n++ {
		total += files[n].Size
	}
	return files[:n]
}

// Mode returns the entry's st_mode: file type and permission bits.
func (e *Entry) Mode() uint32 {
	switch e.Kind {
	case File:
		return 0o100000 | e.Perm
	case Link:
		return 0o120000
	case Dir:
		return 0o040000 | e.Perm
	}
	return 0o010000 | e.Perm
}

// Snapshot is what a directory held at one moment. Entries are sorted by the
// bytes of their paths.
type Snapshot struct {
	Root    string    // where it was taken, absolute
	Format  Format    // hash of the content ids
	Taken   time.Time // when the scan began: see Known
	Entries []Entry

	// Gits are the paths that end in .git and that the scan left out, in no order. They
	// are not saved.
	Gits []superqode.RelPath

	// File holds exactly this and is never written to, "" for none: SaveAs gives it another
	// name. Whoever changes an entry clears it.
	File string
}

// Count returns the number of files and links and the sum of their sizes in
// bytes.
func (s *Snapshot) Count() (files int, bytes int64) {
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Kind == File || e.Kind == Link {
			files++
			bytes += e.Size
		}
	}
	return files, bytes
}

// Problem is one path that could not be scanned or copied and why. The rest of
// the work went on without it.
type Problem struct {
	Path superqode.RelPath // as in Entry; "" for the root itself
	Err  error
}

// Error returns the path, quoted, and the reason.
func (p Problem) Error() string { return fmt.Sprintf("%q: %v", p.Path, p.Err) }

// Unwrap returns the reason.
func (p Problem) Unwrap() error { return p.Err }

// WithProblems joins an error with what could not be read.
func WithProblems(err error, problems []Problem) error {
	errs := []error{err}
	for _, p := range problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// ErrChangedWhileRead is the reason given for a file that kept changing while it
// was copied. What was written is in the result nevertheless.
var ErrChangedWhileRead = errors.New("changed while it was read")

// InTree reports whether git's trees hold the entry: a file or link without a
// name in its path that git apply and git add refuse.
func (e *Entry) InTree() bool {
	if e.Kind != File && e.Kind != Link {
		return false
	}
	for name := range strings.SplitSeq(string(e.Path), "/") {
		if refusedName(name) || e.Kind == Link && strings.EqualFold(name, ".gitmodules") {
			return false
		}
	}
	return true
}

// refusedName reports whether git takes name for its own folder on some system:
// .git in any case, its short form git~1, either followed by what Windows drops
// (dots, spaces, a stream's name). See is_ntfs_dotgit in git's path.c.
func refusedName(name string) bool {
	if len(name) < 4 || name[0] != '.' && name[0]|0x20 != 'g' {
		return false
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}
