package layers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// ErrNoHelper means that there is no binary to put into the sessions' folders.
var ErrNoHelper = site.ErrNoHelper

// Helper returns the binary that guards; see site.Helper.
func (m *Machine) Helper() (string, error) { return site.Helper(m.Shim) }

// CachePath is the folder for what can be made again.
func (m *Machine) CachePath() string { return filepath.Join(m.Home, "cache") }

// fileKey names a file's contents as well as its stat data can.
func fileKey(path string) (string, os.FileInfo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", nil, err
	}
	ino := uint64(0)
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		ino = sys.Ino
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%d", path, ino, st.Size(), st.ModTime().UnixNano()))
	return hex.EncodeToString(sum[:6]), st, nil
}

// helperCopy returns superqode's own copy of the helper, to which the sessions'
// folders have hard links. The installed file itself is never linked: a program
// that writes into its session's bin/git would write into it.
func (m *Machine) helperCopy() (string, error) {
	src, err := m.Helper()
	if err != nil {
		return "", err
	}
	key, st, err := fileKey(src)
	if err != nil {
		return "", err
	}
	dst := filepath.Join(m.CachePath(), "shim-"+key)
	if have, err := os.Lstat(dst); err == nil && have.Mode().IsRegular() && have.Mode().Perm() == HelperPerm &&
		have.Size() == st.Size() && have.ModTime().Equal(st.ModTime()) {
		return dst, nil
	}
	return dst, m.copyHelper(src, dst, st)
}

// HelperPerm are the permission bits of a helper in a session's folder.
const HelperPerm = 0o500

func (m *Machine) copyHelper(src, dst string, st os.FileInfo) error {
	if err := os.MkdirAll(m.CachePath(), 0o700); err != nil {
		return state.Unwritable(err, m.CachePath())
	}
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	// Its time of change is the last thing to come: a copy that has it is whole.
	err = atomicfile.WriteFunc(dst, HelperPerm, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", src, err)
	}
	if err := os.Chtimes(dst, st.ModTime(), st.ModTime()); err != nil {
		return err
	}
	return m.dropOld("shim-", filepath.Base(dst))
}

// dropOld removes what an earlier superqode, or an earlier git, has left in the
// cache. Sessions under way keep their links.
func (m *Machine) dropOld(prefix, keep string) error {
	entries, err := os.ReadDir(m.CachePath())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && e.Name() != keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(m.CachePath(), e.Name())))
		}
	}
	return err
}

// linkHelper puts the helper into a session's folder under the given names,
// which are relative to it. What stands there is replaced.
func (m *Machine) linkHelper(dir string, names []string) error {
	for try := 0; ; try++ {
		src, err := m.helperCopy()
		if err != nil {
			return err
		}
		err = linkAll(src, dir, names)
		switch {
		case err == nil:
			return nil
		case try < 3 && errors.Is(err, os.ErrNotExist): // another superqode has replaced it meanwhile
		case try < 3 && errors.Is(err, syscall.EMLINK): // thousands of sessions hang on this copy
			if err := os.Remove(src); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		default:
			return err
		}
	}
}

func linkAll(src, dir string, names []string) error {
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.Link(src, path)
		if errors.Is(err, os.ErrExist) {
			if atomicfile.SameFile(src, path) {
				continue
			}
			if err = os.RemoveAll(path); err == nil {
				err = os.Link(src, path)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
