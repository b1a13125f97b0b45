// Package atomicfile replaces files so that a reader, or a machine that comes
// back after a power cut, sees the old contents or the new ones and nothing
// between: a temporary file with a unique name beside the target, fsync, rename,
// fsync of the folder.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// Write replaces the file at path by data with permission bits perm.
func Write(path string, data []byte, perm os.FileMode) error {
	return WriteFunc(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace is Write without waiting for the disk: a reader sees the old contents
// or the new ones, a machine that comes back after a power cut may see neither.
// It is for files that are recreated then.
func Replace(path string, data []byte, perm os.FileMode) error {
	return replace(path, perm, false, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc replaces the file at path by what fill writes. On any error the
// temporary file is removed and the old file stays; only if the folder cannot
// be synced after the rename does it return an error with the new file in
// place. A symbolic link at path is replaced, not followed.
func WriteFunc(path string, perm os.FileMode, fill func(io.Writer) error) error {
	if err := failpoint.Err("atomicfile.create"); err != nil {
		return err
	}
	if err := replace(path, perm, true, fill); err != nil {
		return err
	}
	failpoint.Hit("atomicfile.renamed")
	return SyncDir(filepath.Dir(path))
}

// maxName keeps the temporary file's name below the 255 bytes that file systems
// allow, however long the target's name is.
const maxName = 200

// replace writes a temporary file, with sync to the disk, and renames it.
func replace(path string, perm os.FileMode, sync bool, fill func(io.Writer) error) (err error) {
	name := filepath.Base(path)
	f, err := os.CreateTemp(filepath.Dir(path), "."+name[:min(len(name), maxName)]+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = fill(f)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if sync {
		failpoint.Hit("atomicfile.written")
	}
	return os.Rename(f.Name(), path)
}

// SyncDir flushes a folder's entries to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteJSON replaces the file at path by v as indented JSON, mode 0600. Keys of
// the old file that v does not know are kept, so that an older superqode does
// not drop what a newer one wrote. v must encode to a JSON object.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	old, err := Read(path)
	// what is not a file has no keys
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrNotRegular) {
		return err
	}
	if data, err = mergeUnknown(old, data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return Write(path, append(data, '\n'), 0o600)
}

// mergeUnknown adds the top-level keys of old that fresh lacks. An old file
// that is not a JSON object has no keys to keep. fresh must hold every key that
// its type knows (no omitempty on top-level fields), otherwise a cleared one
// comes back.
func mergeUnknown(old, fresh []byte) ([]byte, error) {
	var o, n map[string]json.RawMessage
	if err := json.Unmarshal(fresh, &n); err != nil {
		return nil, err
	}
	if n == nil {
		return nil, errors.New("not a JSON object: null")
	}
	if json.Unmarshal(old, &o) != nil {
		return json.MarshalIndent(json.RawMessage(fresh), "", " ")
	}
	kept := false
	for k, v := range o {
		if _, known := n[k]; !known {
			n[k], kept = v, true
		}
	}
	if !kept {
		return json.MarshalIndent(json.RawMessage(fresh), "", " ")
	}
	return json.MarshalIndent(n, "", " ")
}
