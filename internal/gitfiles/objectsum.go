package gitfiles

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object format, not a security boundary
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// ErrDamaged means that an object file does not hold what it was made with.
var ErrDamaged = errors.New("object file is damaged")

// CheckObject checks one object file against itself: packs, their indexes and
// the like end with a hash over all that is before it, a loose object is named by
// the hash of what it unpacks to, and a file of git-lfs by the hash of its bytes.
func CheckObject(file, format string) (err error) {
	f, err := atomicfile.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	newHash := sha1.New
	if format == "sha256" {
		newHash = sha256.New
	}
	name := filepath.Base(file)
	switch folder := filepath.Base(filepath.Dir(file)); {
	case len(name) == 2*sha256.Size: // lfs/objects/ab/cd/abcd…; a loose object's name lacks the first two
		return sumIs(sha256.New(), f, name)
	case len(folder) == 2:
		z, err := zlib.NewReader(f)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return sumIs(newHash(), z, folder+name)
	}
	h := newHash()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() < int64(h.Size()) {
		return ErrDamaged
	}
	if _, err := io.CopyN(h, f, st.Size()-int64(h.Size())); err != nil {
		return err
	}
	tail := make([]byte, h.Size())
	if _, err := io.ReadFull(f, tail); err != nil {
		return err
	}
	if !bytes.Equal(tail, h.Sum(nil)) {
		return ErrDamaged
	}
	return nil
}

func sumIs(h hash.Hash, r io.Reader, want string) error {
	if _, err := io.Copy(h, r); err != nil {
		if _, isFile := r.(*os.File); isFile {
			return err
		}
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return ErrDamaged
	}
	return nil
}
