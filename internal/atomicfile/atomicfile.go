// Package atomicfile replaces files so that a reader sees the old contents or the
// new ones and nothing between: a temporary file with a unique name beside the
// target, which is renamed.
//
// What a machine finds that comes back after a power cut is the writer's choice, for
// every wait for the disk takes as long as the disk does:
//
//   - Durable, for what must be there before something is done that cannot be undone
//     by guessing: what an origin is brought back from before a program starts in it,
//     a patch and the record of the next step before a workspace is removed.
//   - Whole, for what may be lost in its newest version but not in every one: a
//     session's record between such points, the manifest of artifacts.
//   - Loose, for what is worth no more than something that nobody waits for: what
//     describes a workspace, whose own files no program flushes either; a report,
//     which the record's steps lead to again; a cache.
//
// A file of its own is flushed, never a whole file system: that would wait for
// everything that a program has built in the workspace, only for it to be deleted.
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

// Wait is what a write waits for, and so what a machine finds after a power cut.
type Wait int

// The waits.
const (
	Loose   Wait = iota // nothing: the old contents, the new ones, or a damaged file
	Whole               // the contents: the old ones or the new ones
	Durable             // contents and name: the new contents
)

// Write replaces the file at path by data with permission bits perm, durably.
func Write(path string, data []byte, perm os.FileMode) error {
	return Durable.Write(path, data, perm)
}

// Replace is Write without waiting for the disk, see Loose.
func Replace(path string, data []byte, perm os.FileMode) error {
	return Loose.Write(path, data, perm)
}

// WriteFunc replaces the file at path by what fill writes, durably.
func WriteFunc(path string, perm os.FileMode, fill func(io.Writer) error) error {
	return Durable.WriteFunc(path, perm, fill)
}

// WriteJSON is Wait.WriteJSON, durably.
func WriteJSON(path string, v any) error { return Durable.WriteJSON(path, v) }

// Write replaces the file at path by data with permission bits perm.
func (wait Wait) Write(path string, data []byte, perm os.FileMode) error {
	return wait.WriteFunc(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc replaces the file at path by what fill writes. On any error the
// temporary file is removed and the old file stays; only if the folder cannot
// be synced after the rename does it return an error with the new file in
// place. A symbolic link at path is replaced, not followed.
func (wait Wait) WriteFunc(path string, perm os.FileMode, fill func(io.Writer) error) error {
	if wait == Loose {
		return wait.replace(path, perm, fill)
	}
	if err := failpoint.Err("atomicfile.create"); err != nil {
		return err
	}
	if err := wait.replace(path, perm, fill); err != nil {
		return err
	}
	failpoint.Hit("atomicfile.renamed")
	if wait == Whole {
		return nil
	}
	return SyncDir(filepath.Dir(path))
}

// maxName keeps the temporary file's name below the 255 bytes that file systems
// allow, however long the target's name is.
const maxName = 200

// replace writes a temporary file and renames it.
func (wait Wait) replace(path string, perm os.FileMode, fill func(io.Writer) error) (err error) {
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
	if err == nil && wait != Loose {
		err = Sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if wait != Loose {
		failpoint.Hit("atomicfile.written")
	}
	return os.Rename(f.Name(), path)
}

// Sync waits until what was written to an open file, or the names in an open folder,
// are on disk.
func Sync(f *os.File) error {
	failpoint.Waits(f.Name())
	return f.Sync()
}

// SyncDir flushes a folder's entries to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(Sync(d), d.Close())
}

// WriteJSON replaces the file at path by v as indented JSON, mode 0600. Keys of
// the old file that v does not know are kept, so that an older superqode does
// not drop what a newer one wrote. v must encode to a JSON object.
func (wait Wait) WriteJSON(path string, v any) error {
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
	return wait.Write(path, append(data, '\n'), 0o600)
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
