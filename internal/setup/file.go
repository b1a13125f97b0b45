package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/text"
)

// file is a file entry.
type file struct {
	config.SetupFile
	key string

	perm fs.FileMode
	sum  string
}

func (f *file) step() Step     { return Step{Key: f.key, Kind: KindFile, Name: f.Target.String()} }
func (f *file) optional() bool { return false }

// target is what is at a file's path.
type target struct {
	mode fs.FileMode
	sum  string // of a regular file
}

// decideFile is the whole decision on a file; there is nil if nothing is at its
// path.
func decideFile(perm fs.FileMode, sum string, there *target) (apply bool, why string) {
	switch {
	case there == nil:
		return true, "it is not there"
	case !there.mode.IsRegular():
		return true, "something else is in its place"
	case there.sum != sum:
		return true, "its content differs"
	case there.mode.Perm() != perm:
		return true, fmt.Sprintf("its mode is %04o, not %04o", there.mode.Perm(), perm)
	}
	return false, "content and mode are as wanted"
}

func (f *file) decide(_ context.Context, w *work) (bool, string, error) {
	perm, sum, err := f.wanted(w)
	if err != nil {
		return false, "", err
	}
	f.perm, f.sum = perm, sum
	there, err := w.target(f.Target.String())
	if err != nil {
		return false, "", err
	}
	apply, why := decideFile(f.perm, f.sum, there)
	return apply, why, nil
}

// wanted returns the permission bits and the hash that the target has to have.
func (f *file) wanted(w *work) (fs.FileMode, string, error) {
	perm := fs.FileMode(f.Mode)
	if f.From == "" {
		if perm == 0 {
			perm = 0o644
		}
		sum, err := hashReader(strings.NewReader(f.Content))
		return perm, sum, err
	}
	src, st, err := f.open(w)
	if err != nil {
		return 0, "", err
	}
	if perm == 0 {
		perm = st.Mode().Perm()
	}
	sum, err := hashReader(src)
	return perm, sum, errors.Join(err, src.Close())
}

// open opens the file that From names, which must be a regular file: opening a
// FIFO would wait for ever.
func (f *file) open(w *work) (*os.File, fs.FileInfo, error) {
	path, err := w.expand(f.From)
	if err != nil {
		return nil, nil, err
	}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, superqode.Errorf(superqode.ErrNotFound, "from %s does not exist", text.Printable(path))
	}
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, superqode.Errorf(superqode.ErrUsage, "from %s is not a file", text.Printable(path))
	}
	src, err := os.Open(path)
	return src, st, err
}

// expand replaces ~/ by the home folder.
func (w *work) expand(p string) (string, error) {
	rest, ok := strings.CutPrefix(p, "~")
	if !ok || rest != "" && rest[0] != '/' {
		return p, nil
	}
	if w.Home == "" {
		return "", superqode.Errorf(superqode.ErrUsage, "%s: HOME is not set", text.Printable(p))
	}
	return filepath.Join(w.Home, rest), nil
}

// target looks at a path of the workspace; nil if nothing is there.
func (w *work) target(rel string) (*target, error) {
	st, err := w.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil { // through a link that leads out, for example; applying says more
		return &target{mode: fs.ModeIrregular}, nil
	}
	t := &target{mode: st.Mode()}
	if !st.Mode().IsRegular() {
		return t, nil
	}
	f, err := w.root.Open(rel)
	if errors.Is(err, fs.ErrPermission) { // then it is not what was written
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.sum, err = hashReader(f)
	return t, errors.Join(err, f.Close())
}

// apply writes the file beside its target and renames it over the target.
func (f *file) apply(ctx context.Context, w *work, _ *Step) error {
	rel := f.Target.String()
	temp, err := w.prepare("target", rel)
	if err != nil {
		return err
	}
	st, err := w.root.Lstat(rel)
	if err == nil && st.IsDir() {
		return superqode.Errorf(superqode.ErrUsage, "target %s is a folder", text.Printable(rel))
	}
	if err == nil && w.Keep != nil {
		if err := w.Keep(ctx, f.Target); err != nil {
			return err
		}
	}
	var content io.Reader = bytes.NewReader([]byte(f.Content))
	if f.From != "" {
		src, _, err := f.open(w)
		if err != nil {
			return err
		}
		defer src.Close()
		content = src
	}
	if err := w.writeFile(temp, f.perm, func(out io.Writer) error {
		_, err := io.Copy(out, content)
		return err
	}); err != nil {
		return err
	}
	if err := w.replace(temp, rel); err != nil {
		return errors.Join(err, w.root.Remove(temp))
	}
	return nil
}
