package artifacts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// os.Root keeps a path inside its folder but follows links that stay inside. The
// functions of this file are stricter: they take one component at a time, look
// before they open and compare what they opened with what they saw.

// tempPrefix begins the name of a file that is still being written. The target's
// name is no part of it: that may already have all the bytes a name can have.
const tempPrefix = ".superqode-tmp-"

func isTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// openFolder opens the folder name in parent. With create, a missing one is made,
// mode 0700.
func openFolder(parent *os.Root, name string, create bool) (*os.Root, error) {
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
		return nil, &fs.PathError{Op: "open", Path: path.Join(parent.Name(), name), Err: fmt.Errorf("%s where a folder should be", kindOf(info.Mode()))}
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

// openFolders opens the folder at the slash-separated path rel below root.
func openFolders(root *os.Root, rel string, create bool) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	if rel == "." {
		return at, nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		sub, err := openFolder(at, name, create)
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

// openRegular opens a regular file for reading and nothing else; a FIFO that took
// its place between look and open does not block. A file that a writer renames
// into place meanwhile, as the manifest's do, is looked at again.
func openRegular(dir *os.Root, name string) (f *os.File, err error) {
	for range 100 {
		if f, err = openSame(dir, name); !errors.Is(err, errReplaced) {
			break
		}
	}
	return f, err
}

var errReplaced = errors.New("it was replaced while it was opened")

// openSame is one attempt of openRegular.
func openSame(dir *os.Root, name string) (*os.File, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: &kindError{info.Mode()}}
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

// openBelow opens the regular file at the slash-separated path rel.
func openBelow(root *os.Root, rel string) (*os.File, error) {
	dir, err := openFolders(root, path.Dir(rel), false)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(dir, path.Base(rel))
	if cerr := dir.Close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, f.Close())
	}
	return f, err
}

// hashBelow returns SHA-256 and size of the regular file at rel.
func hashBelow(root *os.Root, rel string) (sum string, size int64, err error) {
	f, err := openBelow(root, rel)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// kindError says that something is no regular file.
type kindError struct{ mode fs.FileMode }

func (e *kindError) Error() string { return kindOf(e.mode) + ", not a regular file" }

func kindOf(m fs.FileMode) string {
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

// names returns the sorted names in a folder. Only names: an os.DirEntry of a
// Root's file would look its facts up by path, outside the Root.
func names(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	list, err := f.Readdirnames(-1)
	slices.Sort(list)
	return list, errors.Join(err, f.Close())
}

func syncFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writeTemp writes a new file with a name of its own in dir, complete and on
// disk, and returns that name; the caller renames or removes it. On an error
// nothing stays.
func writeTemp(dir *os.Root, fill func(io.Writer) error) (_ string, err error) {
	name := tempPrefix + strings.ToLower(rand.Text())
	if err := failpoint.Err("artifacts.create"); err != nil {
		return "", err
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // closed already on the last path; the first error is the one to tell
			err = errors.Join(err, dir.Remove(name))
		}
	}()
	if err = fill(f); err != nil {
		return "", err
	}
	if err = failpoint.Err("artifacts.write"); err != nil {
		return "", err
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	return name, f.Close()
}

// numbered returns name itself for n = 1, then base-2.ext, base-3.ext, …
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" || len(ext) > 16 { // .profile, or a dot in the middle of a sentence
		stem, ext = name, ""
	}
	tail := fmt.Sprintf("-%d%s", n, ext)
	return stem[:min(len(stem), 255-len(tail))] + tail // 255 bytes is what every file system of Linux and macOS allows
}

// replaceFile is atomicfile.Write below a Root: the file is the old one or the
// new one, never between.
func replaceFile(dir *os.Root, name string, data []byte) error {
	tmp, err := writeTemp(dir, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := dir.Rename(tmp, name); err != nil {
		return errors.Join(err, dir.Remove(tmp))
	}
	return syncFolder(dir)
}

// walk calls visit for everything below root that is not a folder, in order. Paths
// are slash-separated. What can not be looked at goes to visit with its error.
func walk(root *os.Root, rel string, depth int, visit func(dir *os.Root, rel string, info fs.FileInfo, err error) error) error {
	list, err := names(root)
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
			err = fmt.Errorf("nested too deeply")
		}
		var sub *os.Root
		if err == nil {
			sub, err = openFolder(root, name, false)
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

// maxDepth bounds nesting: every level of a walk holds one open folder.
const maxDepth = 100

// staleTemp is the age at which a temporary file can not belong to a writer that
// still lives.
const staleTemp = 24 * time.Hour
