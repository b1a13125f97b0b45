package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotRegular means that something other than a regular file is where one is
// expected.
var ErrNotRegular = errors.New("not a regular file")

// Open opens the regular file at path for reading. Unlike os.Open it follows no
// link at path and never waits: a FIFO, which a program of the same user could
// put there, would block the reader for ever. For anything but a regular file
// it returns a *fs.PathError that wraps ErrNotRegular.
func Open(path string) (*os.File, error) {
	return openRegular(path, os.O_RDONLY, 0)
}

// Append opens the regular file at path for reading and for writing at its end,
// under the same rules as Open; a missing one is made with permission bits perm.
func Append(path string, perm os.FileMode) (*os.File, error) {
	return openRegular(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, perm)
}

// Read returns the contents of the regular file at path, under the same rules
// as Open.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if st, err := f.Stat(); err == nil {
		buf.Grow(int(min(st.Size(), maxGuess)) + bytes.MinRead)
	}
	_, err = buf.ReadFrom(f)
	return buf.Bytes(), errors.Join(err, f.Close())
}

// ClearWay removes what stands at path when it is not a regular file, a folder with
// all that is in it, so that a file can be written there.
func ClearWay(path string) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return os.RemoveAll(path)
	}
	return nil
}

// maxGuess bounds what Read allocates before it has read anything.
const maxGuess = 64 << 20

// ReadThrough is Read for a path that may be a link to a regular file, such as
// the user's or git's own files.
func ReadThrough(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return Read(real)
}

// ReadLine returns the contents of a small file of git's without the last newline, or
// "". Links at path are followed.
func ReadLine(path string) string {
	data, err := ReadThrough(path)
	if err != nil || len(data) > 8192 {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

func openRegular(path string, flag int, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, perm)
	switch {
	// a link, a FIFO or socket, a folder
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EISDIR):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	case err != nil:
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Hash reads a regular file and returns the sha256 of its bytes. The error is
// that of Open.
func Hash(path string) (sum [sha256.Size]byte, err error) {
	f, err := Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, err
}

// Exists reports whether something is at path; a dangling link counts.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SameFile reports whether two names belong to one file.
func SameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// ReadBelow reads a small file below a folder without following any link, and
// returns its text without the white space around it, "" for none.
func ReadBelow(dir, name string) string {
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() { // a FIFO that the program put there would never open
		return ""
	}
	root, err := OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	st, err := root.Lstat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 8<<10 {
		return ""
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// Denied reports whether err says that something may not be written: by its modes, or
// because the file system is read-only.
func Denied(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}
