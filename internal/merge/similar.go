package merge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Similar reports whether at least half of two files is the same, counted in
// bytes of common lines (of 64 bytes at most, as in git's diffcore-delta.c)
// against the bigger file. That is git's -M50%.
func (b *Scratch) Similar(base, now *snapshot.Entry) (bool, error) {
	if max(base.Size, now.Size) > maxSimilar || 2*min(base.Size, now.Size) < max(base.Size, now.Size) {
		return false, nil
	}
	if err := errors.Join(b.Fetch("base", base.ID), b.fetchNow("ours", now)); err != nil {
		return false, fmt.Errorf("compare %s with %s: %w", text.Printable(now.Path), text.Printable(base.Path), err)
	}
	old, err := spans(b.Path("base"))
	if err != nil {
		return false, err
	}
	fresh, err := spans(b.Path("ours"))
	if err != nil {
		return false, err
	}
	common := int64(0)
	for span, n := range old {
		common += min(n, fresh[span])
	}
	return 2*common >= max(base.Size, now.Size), nil
}

// maxSimilar bounds the memory that a comparison takes. A bigger file that was
// renamed and edited by both sides is a conflict.
const maxSimilar = 32 << 20

// spans counts the bytes of each line of a file, or of its pieces where it is
// long.
func spans(path string) (map[[64]byte]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := map[[64]byte]int64{}
	in := bufio.NewReaderSize(f, 64<<10)
	piece := make([]byte, 0, 64)
	for {
		c, err := in.ReadByte()
		if err == nil {
			piece = append(piece, c)
		}
		if len(piece) > 0 && (err != nil || c == '\n' || len(piece) == cap(piece)) {
			list[[64]byte(piece[:64])] += int64(len(piece))
			clear(piece[:64])
			piece = piece[:0]
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
