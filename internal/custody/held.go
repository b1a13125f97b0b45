package custody

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// openFiles holds open, while a program runs in the user's own repository, the files
// from which that would be brought back: a program of the same user that is not
// kept out by the kernel can delete them, and with them the only copy of what
// the user had. What is open can be written anew. What a program writes into
// such a file itself is found out by its hash when it is needed.
type openFiles struct {
	files []openFile
	full  bool // there were more files than may be open
	// shared: other sessions write there at the same time, so that nothing is put back
	shared bool
}

type openFile struct {
	root     string // what holds it is no program's to replace
	path     string
	f        *os.File
	was      unix.Stat_t
	manifest []byte // of the artifacts' manifest: what it held
}

// manifestFile lists the artifacts; superqode replaces it whenever it adds one.
const manifestFile = "manifest.json"

// forged reports whether a manifest is another one than superqode makes of what it was: an
// artifact's entry stays as it is until its file is removed.
func (h openFile) forged() bool {
	if h.manifest == nil {
		return false
	}
	now, err := atomicfile.Read(h.path)
	if err != nil || bytes.Equal(now, h.manifest) {
		return err != nil
	}
	old, fresh := entries(h.manifest), entries(now)
	for path, entry := range old {
		_, lerr := os.Lstat(filepath.Join(filepath.Dir(h.path), path))
		if got, ok := fresh[path]; ok && got != entry || !ok && lerr == nil {
			return true
		}
	}
	return len(old) > 0 && fresh == nil
}

// entries returns the text of a manifest's entries by their paths, nil for no manifest.
func entries(manifest []byte) map[string]string {
	var m struct {
		Artifacts []json.RawMessage `json:"artifacts"`
	}
	if json.Unmarshal(manifest, &m) != nil {
		return nil
	}
	list := map[string]string{}
	for _, raw := range m.Artifacts {
		var e struct {
			Path string `json:"path"`
		}
		var text bytes.Buffer
		if json.Unmarshal(raw, &e) == nil && json.Compact(&text, raw) == nil {
			list[e.Path] = text.String()
		}
	}
	return list
}

// openShare is the part of the files that this process may open which
// custody takes.
const openShare = 4

// maxHeldPath is how long a path may be that is opened at once (PATH_MAX).
const maxHeldPath = 4096

// hold holds every regular file below the folders. A folder that is not
// there holds none.
//
// root holds the folders; what stands between the two is made anew when it has to be.
func hold(root string, folders ...string) (_ *openFiles, err error) {
	v := &openFiles{}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	limit := 1024
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		limit = int(min(lim.Cur, 1<<20)) / openShare
	}
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
				return nil
			}
			if errors.Is(err, syscall.ENAMETOOLONG) || err == nil && len(path) >= maxHeldPath {
				v.full = true
				return nil
			}
			if err != nil {
				return err
			}
			if len(v.files) >= limit {
				v.full = true
				return fs.SkipAll
			}
			f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			h := openFile{root: root, path: path, f: f}
			if d.Name() == manifestFile && filepath.Dir(filepath.Dir(path)) == dir {
				if h.manifest, err = io.ReadAll(f); err != nil {
					return errors.Join(err, f.Close())
				}
			}
			v.files = append(v.files, h)
			return h.stat(&v.files[len(v.files)-1].was)
		})
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (h openFile) stat(st *unix.Stat_t) (err error) {
	conn, err := h.f.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), st) }); cerr != nil {
		return cerr
	}
	return err
}

// changed returns the paths of what was written to, or replaced, and where nothing is put
// back of what is gone. superqode itself replaces manifests only.
func (v *openFiles) changed() (paths []string) {
	if v == nil {
		return nil
	}
	for _, h := range v.files {
		var is, at unix.Stat_t
		lerr := unix.Lstat(h.path, &at)
		written := h.stat(&is) != nil || is.Size != h.was.Size || is.Mtim != h.was.Mtim
		switch {
		case h.manifest != nil:
			written = v.shared && h.forged() // else restoreMissing writes it anew
		case lerr != nil, at.Mode&unix.S_IFMT != unix.S_IFREG:
			written = v.shared
		case at.Ino == is.Ino && at.Dev == is.Dev:
			written = written || is.Ctim != h.was.Ctim
		default:
			written = written || filepath.Base(h.path) != manifestFile
		}
		if written {
			paths = append(paths, h.path)
		}
	}
	return paths
}

func (v *openFiles) close() error {
	if v == nil {
		return nil
	}
	var err error
	for _, h := range v.files {
		err = errors.Join(err, h.f.Close())
	}
	v.files = nil
	return err
}

// restore writes anew what was deleted or replaced, and reports whether there
// was anything.
func (v *openFiles) restore() (tampered bool, err error) {
	return v.putBack(func(h openFile) (bool, error) {
		is, ferr := h.f.Stat()
		now, lerr := os.Lstat(h.path)
		return ferr == nil && lerr == nil && os.SameFile(is, now), ferr
	})
}

// restoreMissing is restore for files that others may write meanwhile: only what
// is gone is written anew, and a manifest that superqode did not make.
func (v *openFiles) restoreMissing() (tampered bool, err error) {
	if v != nil && v.shared {
		return false, nil
	}
	return v.putBack(func(h openFile) (bool, error) {
		ferr := makeFolders(h.root, filepath.Dir(h.path))
		st, lerr := os.Lstat(h.path)
		return ferr == nil && lerr == nil && st.Mode().IsRegular() && !h.forged(), ferr
	})
}

func (v *openFiles) putBack(there func(openFile) (bool, error)) (tampered bool, err error) {
	if v == nil {
		return false, nil
	}
	for _, h := range v.files {
		if ok, terr := there(h); !ok {
			tampered, err = true, errors.Join(err, terr, h.putBack())
		}
	}
	return tampered, err
}

func (h openFile) putBack() error {
	st, err := h.f.Stat()
	if err != nil {
		return err
	}
	if err := makeFolders(h.root, filepath.Dir(h.path)); err != nil {
		return err
	}
	if err := atomicfile.ClearWay(h.path); err != nil {
		return err
	}
	if h.manifest != nil {
		return atomicfile.Write(h.path, h.manifest, st.Mode().Perm())
	}
	return rewrite(h.path, st.Mode().Perm(), h.f)
}

// rewrite makes the file at path hold what an open one does.
func rewrite(path string, perm fs.FileMode, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return atomicfile.WriteFunc(path, perm, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// makeFolders makes dir and what leads to it from root on. What is no folder is
// replaced: through a link a program would have superqode write elsewhere.
func makeFolders(root, dir string) error {
	up := os.MkdirAll
	if dir != root {
		up = func(dir string, _ os.FileMode) error { return makeFolders(root, dir) }
	}
	if err := up(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err == nil && st.IsDir() {
		if st.Mode().Perm()&0o700 == 0o700 {
			return nil
		}
		return os.Chmod(dir, st.Mode().Perm()|0o700)
	}
	if err == nil {
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return os.Mkdir(dir, 0o700)
}
