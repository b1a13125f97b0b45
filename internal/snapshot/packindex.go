package snapshot

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's object format, not a security boundary
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/text"
)

// newHash starts a hash without an object header.
func (f Format) newHash() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // as above
}

// writePackIndex writes the index of a finished pack: by go-git, which knows
// SHA-1 only, else by git itself.
func (s *Store) writePackIndex(ctx context.Context, pack, idx string, sum []byte, objects []packedObject, durable bool) error {
	if s.format == SHA256 {
		if err := s.run(ctx, git.Cmd{Args: []string{"-c", "pack.writeReverseIndex=false", "index-pack", "-o", idx, pack}, Stdout: io.Discard}); err != nil {
			return err
		}
		f, err := os.Open(idx)
		if err != nil {
			return err
		}
		return syncClose(f, durable, nil)
	}
	var w idxfile.Writer
	err := w.OnHeader(uint32(len(objects)))
	for _, o := range objects {
		w.Add(plumbing.Hash(o.id.Bytes()), uint64(o.off), o.crc)
	}
	err = errors.Join(err, w.OnFooter(plumbing.Hash(sum)))
	mem, ierr := w.Index()
	if err = errors.Join(err, ierr); err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	f, err := os.OpenFile(idx, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = idxfile.NewEncoder(f).Encode(mem)
	return syncClose(f, durable, err)
}

// syncClose ends the writing of f, which went as err says.
func syncClose(f *os.File, durable bool, err error) error {
	if err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// wholeTable is up to how many bytes of ids a pack index is read at once rather
// than searched.
const wholeTable = 1 << 20

// own returns which of ids lie in the store's own packs. What only the origin
// holds does not count: the user may prune it there.
func (s *Store) own(ids []ID) (map[ID]bool, error) {
	found := map[ID]bool{}
	rest := make([]ID, 0, len(ids))
	s.mu.Lock()
	for _, id := range ids {
		if s.mine[id] {
			found[id] = true
		} else {
			rest = append(rest, id)
		}
	}
	s.mu.Unlock()
	if len(rest) == 0 {
		return found, nil
	}
	packs, err := filepath.Glob(text.QuotePattern(filepath.Join(s.dir, "objects/pack")) + "/pack-*.idx")
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		if rest, err = s.searchIndex(p, rest, found); errors.Is(err, os.ErrNotExist) {
			continue // git gc in the store took it away just now
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if len(rest) == 0 {
			break
		}
	}
	s.remember(found)
	return found, nil
}

func (s *Store) remember(ids map[ID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range ids {
		s.mine[id] = true
	}
}

// searchIndex looks ids up in one pack index (version 2), adds what it holds to
// found and returns the others.
func (s *Store) searchIndex(path string, ids []ID, found map[ID]bool) ([]ID, error) {
	f, err := os.Open(path)
	if err != nil {
		return ids, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	var head [8 + 256*4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return ids, err
	}
	if string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return ids, nil // version 1: an object more than needed does no harm
	}
	fan := func(i int) int { return int(binary.BigEndian.Uint32(head[8+i*4:])) }
	width := s.format.Size()
	var table io.ReaderAt = f
	base := int64(len(head))
	if n := fan(255) * width; n <= wholeTable {
		b := make([]byte, n)
		if _, err := io.ReadFull(f, b); err != nil {
			return ids, err
		}
		table, base = bytes.NewReader(b), 0
	}
	rest := ids[:0:0]
	name := make([]byte, width)
	for _, id := range ids {
		first := id.Bytes()[0]
		lo, hi := 0, fan(int(first))
		if first > 0 {
			lo = fan(int(first) - 1)
		}
		if lo > hi {
			return ids, errors.New("damaged pack index")
		}
		var rerr error
		at := func(i int) []byte {
			if _, err := table.ReadAt(name, base+int64(i)*int64(width)); err != nil && rerr == nil {
				rerr = err
			}
			return name
		}
		i := lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(at(lo+i), id.Bytes()) >= 0 })
		if i < hi && bytes.Equal(at(i), id.Bytes()) {
			found[id] = true
		} else {
			rest = append(rest, id)
		}
		if rerr != nil {
			return ids, rerr
		}
	}
	return rest, nil
}
