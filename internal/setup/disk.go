package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// checkParent refuses a path of the workspace whose folder, links followed, is
// outside it, or in a folder of git's or superqode's. key names the path's key.
func (w *work) checkParent(key, rel string) error {
	return w.checkFolder(key+" "+text.Printable(rel), path.Dir(rel))
}

// checkFolder is checkParent for the folder itself. The longest part of it that
// exists counts: superqode creates the rest.
func (w *work) checkFolder(what, dir string) error {
	for part := dir; ; part = path.Dir(part) {
		full := filepath.Join(w.Workspace, part)
		if _, err := os.Lstat(full); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue // "." exists
		} else if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		rel, err := w.resolve(part)
		if errors.Is(err, errOutside) {
			return superqode.Errorf(superqode.ErrUsage, "%s leads out of the workspace through the link %s", what,
				text.Printable(part))
		}
		if err != nil { // a dangling link: what is created through it could be anywhere
			return superqode.Errorf(superqode.ErrUsage, "%s leads through %s, a dangling link", what,
				text.Printable(part))
		}
		if inGit(rel) || rel == ".superqode" || strings.HasPrefix(rel, ".superqode/") {
			return superqode.Errorf(superqode.ErrUsage, "%s leads into %s through the link %s, where setup may not write", what, text.Printable(rel), text.Printable(part))
		}
		if st, err := os.Stat(filepath.Join(w.Workspace, rel)); err != nil || !st.IsDir() {
			return superqode.Errorf(superqode.ErrUsage, "%s: %s is not a folder", what, text.Printable(part))
		}
		return nil
	}
}

// errOutside means that a link leads out of the workspace.
var errOutside = errors.New("it leads out of the workspace")

// top is the workspace, links resolved where that is possible: a folder that is reached
// by a descriptor has no other path.
func (w *work) top() string {
	if w.Inside != w.Workspace {
		return w.Workspace
	}
	return superqode.RealPrefix(w.Workspace)
}

// resolve follows the links of a path below the workspace, and returns where that leads
// below it. An absolute link is one that the session's programs follow.
func (w *work) resolve(rel string) (string, error) {
	at, left := ".", strings.Split(filepath.Clean(rel), "/")
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		if at = filepath.Join(at, name); !filepath.IsLocal(at) {
			return "", errOutside
		}
		full := filepath.Join(w.Workspace, at) + "/."
		if at != "." {
			full = filepath.Join(w.Workspace, at)
		}
		st, err := os.Lstat(full)
		if err != nil {
			return "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links++; links > 40 {
			return "", syscall.ELOOP
		}
		to, err := os.Readlink(full)
		if err != nil {
			return "", err
		}
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "."
			inside, ok := "", false
			for _, top := range []string{w.Inside, w.top()} {
				if r, err := filepath.Rel(top, to); err == nil && filepath.IsLocal(r) && !ok {
					inside, ok = r, true
				}
			}
			if !ok {
				return "", errOutside
			}
			to = inside
		}
		left = append(strings.Split(to, "/"), left...)
	}
	return at, nil
}

// prepare makes the target's folder and returns an unused path beside the
// target.
func (w *work) prepare(key, target string) (temp string, err error) {
	if err := w.checkParent(key, target); err != nil {
		return "", err
	}
	dir := path.Dir(target)
	if dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	return path.Join(dir, ".superqode-"+strings.ToLower(rand.Text()[:12])), nil
}

// writeFile makes a new file with exactly these permission bits.
func (w *work) writeFile(name string, perm fs.FileMode, fill func(io.Writer) error) (err error) {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(perm) // whatever the umask says
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, w.root.Remove(name))
	}
	return err
}

// erase removes what superqode put at a path, even if it removed the write
// permission.
func (w *work) erase(name string) error {
	err := w.root.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if werr := w.eachBelow(name, func(p string, st fs.FileInfo) error {
		if st.IsDir() {
			return w.root.Chmod(p, st.Mode().Perm()|0o700)
		}
		return nil
	}); werr != nil {
		return errors.Join(err, werr)
	}
	return w.root.RemoveAll(name)
}

// eachBelow visits a path and everything below it, folders first. It follows no
// link.
func (w *work) eachBelow(name string, visit func(string, fs.FileInfo) error) error {
	st, err := w.root.Lstat(name)
	if err != nil {
		return err
	}
	if err := visit(name, st); err != nil || !st.IsDir() {
		return err
	}
	d, err := w.root.Open(name)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, n := range names {
		if err := w.eachBelow(path.Join(name, n), visit); err != nil {
			return err
		}
	}
	return nil
}

// replace moves temp to the target in one step. If either is a folder, and the
// platform cannot exchange them, it takes two renames.
func (w *work) replace(temp, target string) error {
	old, err := w.root.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return w.root.Rename(temp, target)
	}
	if err != nil {
		return err
	}
	fresh, err := w.root.Lstat(temp)
	if err != nil {
		return err
	}
	if !old.IsDir() && !fresh.IsDir() {
		return w.root.Rename(temp, target)
	}
	aside := temp
	if err := w.exchange(temp, target); err != nil {
		aside = temp + "-old"
		if err := w.root.Rename(target, aside); err != nil {
			return err
		}
		if err := w.root.Rename(temp, target); err != nil {
			return errors.Join(err, w.root.Rename(aside, target))
		}
	}
	return w.erase(aside)
}

// exchange swaps two paths of one folder in one step.
func (w *work) exchange(a, b string) error {
	dir, err := w.root.Open(path.Dir(a))
	if err != nil {
		return err
	}
	return errors.Join(exchangeAt(dir, path.Base(a), path.Base(b)), dir.Close())
}
