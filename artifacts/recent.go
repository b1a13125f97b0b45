package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/rooted"
)

// A manifest holds every session that was not pruned, and the end of a session adds
// a handful of entries. That must not cost what reading the others costs. So a stamp
// in the lock file says by which stat data the manifest is known that was written
// last, and where in it the list ends. As long as the file fits, nobody else has
// written to it: its text is what encode made. Then whoever needs one session's
// entries reads the file from its end, back to an entry that is older than the
// session, and the kernel copies what stands before that.

// How encode begins the list and an entry, and what follows the list. Strings hold
// no line breaks, so no text within them looks like it.
const (
	listBegin  = "\n \"artifacts\": ["
	entryBegin = "\n  {\n"
	listEnd    = "\n ]"
)

// older is the text of a manifest's first entries, which were not read.
type older struct {
	file     *os.File
	from, to int64
}

// copyTo copies the text; the kernel does, where w is a file.
func (o older) copyTo(w io.Writer) error {
	if o.file == nil {
		return nil
	}
	if _, err := o.file.Seek(o.from, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(w, o.file, o.to-o.from)
	return err
}

// recent reads from f, the manifest, what a session needs of it. ok is false where
// that is not known: then the manifest is to be read whole.
func (p *place) recent(f *os.File, of superqode.SessionID) (m manifest, ok bool) {
	end, ok := p.stamped(f)
	began, err := time.Parse("20060102-150405", of.String()[len("qe-"):][:len("20060102-150405")])
	head, herr := io.ReadAll(io.NewSectionReader(f, 0, 4<<10))
	list := int64(bytes.Index(head, []byte(listBegin)) + len(listBegin))
	if err = errors.Join(err, herr); !ok || err != nil || list < int64(len(listBegin)) {
		return m, false
	}
	for window := int64(8 << 10); err == nil; window *= 4 {
		from := max(list, end-window)
		var text []byte
		text, err = io.ReadAll(io.NewSectionReader(f, from, 1<<62))
		begin := int64(bytes.Index(text, []byte(entryBegin)))
		if err != nil || begin < 0 || from+begin >= end {
			break
		}
		m, problems, err := parseManifest(slices.Concat(head[:list], text[begin:]))
		m.older = older{f, list, from + begin}
		if err != nil || len(problems) > 0 || m.version != manifestVersion {
			break
		}
		if from == list || m.entries[0].CreatedAt.Before(began) {
			return m, true
		}
	}
	return m, false
}

// ofOne returns the session that all items are of, by their paths too, so that no
// other session's entries stand in their way; zero where there is none.
func ofOne(items []*item) superqode.SessionID {
	of := items[0].Session
	for _, it := range items {
		if it.saved || it.Session != of || !strings.Contains(it.Path.String(), of.String()) {
			return superqode.SessionID{}
		}
	}
	return of
}

// stampOf is by what a manifest is known.
func stampOf(info fs.FileInfo, end int64) string {
	st, _ := info.Sys().(*syscall.Stat_t) // of an os.FileInfo it is nothing else
	return fmt.Sprintln(end, st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano())
}

// stamped returns where the list ends in f, if it is the manifest that was written last.
func (p *place) stamped(f *os.File) (end int64, ok bool) {
	stamp, err := rooted.Read(p.dot, lockName, 1<<10)
	if err == nil {
		_, err = fmt.Sscan(string(stamp), &end)
	}
	info, serr := f.Stat()
	return end, err == nil && serr == nil && string(stamp) == stampOf(info, end)
}

// stamp notes which manifest was written last, and where its list ends; the caller
// holds the lock. Without the note a manifest is read whole.
func (p *place) stamp(m *manifest, end int64) {
	info, err := p.root.Lstat(manifestName)
	opaque := slices.ContainsFunc(m.entries, func(e entry) bool { return e.opaque })
	if err == nil && !opaque && time.Since(info.ModTime()) > time.Second {
		_ = p.dot.WriteFile(lockName, []byte(stampOf(info, end)), 0o600)
	}
}

// age makes a manifest look older than it is, by more than any clock's tick: whoever
// writes to it afterwards, however soon, changes its time.
func age(root *os.Root, name string) {
	past := time.Now().Add(-2 * time.Second)
	_ = root.Chtimes(name, past, past) // where that fails, stamp sees it
}
