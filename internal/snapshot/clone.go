package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// CanClone reports whether files of the folder from can be cloned (FICLONE) into
// the folder to, where two files are made to try it.
func CanClone(from, to string) bool {
	var a, b unix.Stat_t
	if unix.Stat(from, &a) != nil || unix.Stat(to, &b) != nil || a.Dev != b.Dev {
		return false
	}
	in, err := os.CreateTemp(to, ".clone-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(in.Close(), os.Remove(in.Name())) }() // an empty-handed answer is the only harm
	if _, err := in.Write(make([]byte, 4096)); err != nil {
		return false
	}
	out, err := os.CreateTemp(to, ".clone-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(out.Close(), os.Remove(out.Name())) }()
	return cloneFile(int(in.Fd()), int(out.Fd())) == nil
}

// StatEntry returns what one file is, without its content id. No link is
// followed.
func StatEntry(file string) (Entry, error) {
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil {
		return Entry{}, &os.PathError{Op: "lstat", Path: file, Err: err}
	}
	var e Entry
	e.fill(&st)
	return e, nil
}
