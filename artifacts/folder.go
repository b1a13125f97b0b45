package artifacts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/rooted"
)

// tempPrefix begins the name of a file that is still being written. The target's
// name is no part of it: that may already have all the bytes a name can have.
const tempPrefix = ".superqode-tmp-"

func isTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// hashBelow returns SHA-256 and size of the regular file at rel.
func hashBelow(root *os.Root, rel string) (sum string, size int64, err error) {
	f, err := rooted.File(root, rel)
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

// writeTemp is writeFile that waits for the disk.
func writeTemp(dir *os.Root, fill func(io.Writer) error) (string, error) {
	return writeFile(dir, atomicfile.Whole, fill)
}

// writeFile writes a new file with a name of its own in dir, complete and, unless it
// is loose, on disk, and returns that name; the caller renames or removes it. On an
// error nothing stays.
func writeFile(dir *os.Root, wait atomicfile.Wait, fill func(io.Writer) error) (_ string, err error) {
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
	if wait != atomicfile.Loose {
		if err = atomicfile.Sync(f); err != nil {
			return "", err
		}
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

// replaceFile is atomicfile.Whole.Write below a Root: the file is the old one or the
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
	return nil
}

// staleTemp is the age at which a temporary file cannot belong to a writer that
// still lives.
const staleTemp = 24 * time.Hour
