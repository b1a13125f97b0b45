// Package rooted opens files below a folder that somebody else may be changing.
// An os.Root keeps a path inside its folder but follows links that stay inside.
// The functions here are stricter: they take one component at a time, look before
// they open, and compare what they opened with what they saw, so that no symbolic
// link is followed and nothing but folders and regular files is opened. Relative
// paths are slash-separated raw bytes.
package rooted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// KindError reports something that is not a regular file.
type KindError struct{ Mode fs.FileMode }

// Error names what is there.
func (e *KindError) Error() string { return KindOf(e.Mode) + ", not a regular file" }

// KindOf names a file's type in words: "a symbolic link", "a folder".
func KindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsRegular():
		return "a regular file"
	}
	return "something of unknown kind"
}

// Open opens the folder dir. Links above it are the caller's way of naming it; dir
// itself must not be one.
func Open(dir string) (*os.Root, error) {
	parent, err := atomicfile.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return Folder(parent, filepath.Base(dir), false)
}

// Folder opens the folder name in parent. With create, a missing one is made with
// mode 0700.
func Folder(parent *os.Root, name string, create bool) (*os.Root, error) {
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = parent.Mkdir(name, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = parent.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path.Join(parent.Name(), name),
			Err: fmt.Errorf("%s where a folder should be", KindOf(info.Mode()))}
	}
	sub, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", sub.Name()), err, sub.Close())
	}
	return sub, nil
}

// Folders opens the folder at rel below root; "." is root itself.
func Folders(root *os.Root, rel string, create bool) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil || rel == "." {
		return at, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		sub, err := Folder(at, name, create)
		if cerr := at.Close(); err == nil && cerr != nil {
			return nil, errors.Join(cerr, sub.Close())
		}
		if err != nil {
			return nil, err
		}
		at = sub
	}
	return at, nil
}

var errReplaced = errors.New("it was replaced while it was opened")

// Regular opens the regular file name in dir for reading; the error is a
// *KindError for anything else. A FIFO that takes its place between look and open
// does not block. A file that a writer renames into place meanwhile is looked at
// again.
func Regular(dir *os.Root, name string) (f *os.File, err error) {
	for range 100 {
		if f, err = openSame(dir, name); !errors.Is(err, errReplaced) {
			break
		}
	}
	return f, err
}

func openSame(dir *os.Root, name string) (*os.File, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: &KindError{info.Mode()}}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errReplaced}, err, f.Close())
	}
	return f, nil
}

// File opens the regular file at rel below root.
func File(root *os.Root, rel string) (*os.File, error) {
	dir, err := Folders(root, path.Dir(rel), false)
	if err != nil {
		return nil, err
	}
	f, err := Regular(dir, path.Base(rel))
	if cerr := dir.Close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, f.Close())
	}
	return f, err
}

// TooLargeError reports a file that has more bytes than the caller reads.
type TooLargeError struct{ Limit int64 }

// Error names the limit.
func (e *TooLargeError) Error() string { return fmt.Sprintf("has more than %s", text.Size(e.Limit)) }

// Read returns the content of the regular file at rel below root; the error is a
// *TooLargeError where it has more than limit bytes.
func Read(root *os.Root, rel string, limit int64) ([]byte, error) {
	f, err := File(root, rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &TooLargeError{limit}
	}
	return data, err
}

// Names returns the sorted names in a folder. Only names: an os.DirEntry of a
// Root's file would look its facts up by path, outside the Root.
func Names(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	list, err := f.Readdirnames(-1)
	slices.Sort(list)
	return list, errors.Join(err, f.Close())
}

// Sync makes the names in a folder durable.
func Sync(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Sync(f), f.Close())
}

// MaxDepth bounds the nesting of folders that Walk enters: every level of a walk holds one open folder.
const MaxDepth = 100

// A Visit is called with the folder that holds a file, the file's path below the
// walk's root and what Lstat says about it, or with the error of looking at it;
// then dir and info may be nil. An error that it returns ends the walk.
type Visit func(dir *os.Root, rel string, info fs.FileInfo, err error) error

// Walk visits everything below root that is not a folder, in the order of names.
// What cannot be looked at goes to visit with its error, and so does a folder that
// is nested too deeply.
func Walk(root *os.Root, visit Visit) error { return walk(root, "", MaxDepth, visit) }

func walk(root *os.Root, rel string, depth int, visit Visit) error {
	list, err := Names(root)
	if err != nil {
		return visit(nil, rel, nil, err)
	}
	for _, name := range list {
		p := path.Join(rel, name)
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() {
			if err := visit(root, p, info, err); err != nil {
				return err
			}
			continue
		}
		if depth <= 0 {
			err = errors.New("nested too deeply")
		}
		var sub *os.Root
		if err == nil {
			sub, err = Folder(root, name, false)
		}
		if err != nil {
			if err := visit(nil, p, info, err); err != nil {
				return err
			}
			continue
		}
		err = walk(sub, p, depth-1, visit)
		if err = errors.Join(err, sub.Close()); err != nil {
			return err
		}
	}
	return nil
}
