package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/snapshot"
)

// bench is a folder of the session in which contents are put together: merges,
// and files with some of their hunks. Nothing is done in the origin.
type bench struct {
	s      *Session
	dir    string
	blobs  *snapshot.BlobReader
	origin string
	format snapshot.Format
	n      int               // how many names were given
	made   map[string]string // content ids of the results, in hex, and the files that have them
}

// fresh returns a name that no file of the bench has: two results may well be the
// same content.
func (b *bench) fresh(prefix string) string {
	b.n++
	return prefix + strconv.Itoa(b.n)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// benchPrefix begins the name of each bench's folder.
const benchPrefix = ".apply-"

func (s *Session) openBench(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp(s.dir, benchPrefix+"*")
	if err != nil {
		return nil, err
	}
	b := &bench{s: s, dir: dir, origin: string(s.rec.Origin), format: s.store.Format(), made: map[string]string{}}
	if b.blobs, err = s.store.OpenBlobs(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// fill writes contents that were made here, or that the store has.
func (b *bench) fill(id string, w io.Writer) error {
	if name, ok := b.made[id]; ok {
		f, err := os.Open(b.path(name))
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	}
	content, err := snapshot.ParseID(id)
	if err != nil {
		return err
	}
	return b.blobs.Copy(content, w)
}

func (b *bench) close() error { return errors.Join(b.blobs.Close(), os.RemoveAll(b.dir)) }

// drop removes a file of the bench.
func (b *bench) drop(name string) error { return os.Remove(b.path(name)) }

// fetchNow writes what a file holds now into a file of the bench: what the origin
// holds or, where nothing is done about one, what was put together before.
func (b *bench) fetchNow(name string, e *snapshot.Entry) error {
	if b.origin != "" {
		return b.fetchOrigin(name, e)
	}
	f, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.fill(e.ID.String(), f), f.Close())
}

// result takes a finished file and returns its contents as an entry.
func (b *bench) result(name string) (snapshot.Entry, error) {
	sn := &snapshot.Snapshot{Root: b.dir, Format: b.format, Entries: []snapshot.Entry{{Path: name, Kind: snapshot.File}}}
	problems, err := snapshot.HashMissing(context.Background(), sn)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err == nil {
		b.made[sn.Entries[0].ID.String()] = name
	}
	return sn.Entries[0], err
}

// fetch writes contents of the store into a file.
func (b *bench) fetch(name string, id snapshot.ID) error {
	f, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.blobs.Copy(id, f), f.Close())
}

// fetchOrigin writes what a file of the origin holds into a file. It must be what
// it was when it was looked at.
func (b *bench) fetchOrigin(name string, e *snapshot.Entry) error {
	return b.fetchFrom(b.origin, name, e)
}

// fetchFrom is fetchOrigin for any folder.
func (b *bench) fetchFrom(dir, name string, e *snapshot.Entry) error {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in, err := root.OpenFile(e.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	h := b.format.NewBlobHash(e.Size)
	_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, e.Size+1))
	if err = errors.Join(err, out.Close()); err == nil && snapshot.IDFrom(h.Sum(nil)) != e.ID {
		err = superqode.Errorf(superqode.ErrConflict, "%s changed while it was looked at", visible(e.Path))
	}
	return err
}

// merge is a merger that asks git merge-file.
func (b *bench) merge(ctx context.Context) merger {
	return func(base, ours, theirs *snapshot.Entry) (merged snapshot.Entry, ok, binary bool, err error) {
		if err = errors.Join(b.fetch("base", base.ID), b.fetchNow("ours", ours), b.fetch("theirs", theirs.ID)); err != nil {
			return merged, false, false, fmt.Errorf("merge %s: %w", visible(ours.Path), err)
		}
		for _, name := range []string{"base", "ours", "theirs"} {
			if binary, err = isBinary(b.path(name)); binary || err != nil {
				return merged, false, binary, err
			}
		}
		name := b.fresh("merged-")
		ok, err = b.mergeFile(ctx, name)
		if err != nil {
			return merged, false, false, fmt.Errorf("merge %s: %w", visible(ours.Path), err)
		}
		if !ok {
			return merged, false, false, os.Remove(b.path(name))
		}
		merged, err = b.result(name)
		return merged, true, false, err
	}
}

// mergeFile reports whether the three files merge without a conflict.
func (b *bench) mergeFile(ctx context.Context, name string) (bool, error) {
	g, err := b.s.m.git(ctx)
	if err != nil {
		return false, err
	}
	out, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	err = g.Run(ctx, git.Cmd{
		Dir: b.dir, Stdout: out, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.dir)},
		Args: []string{"merge-file", "-p", "-q", "-L", sideOrigin, "-L", "base", "-L", sideSession, "ours", "base", "theirs"},
	})
	err = errors.Join(err, out.Close())
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code > 0 && exit.Code < 128 { // the number of conflicts, as git-merge-file(1) has it
		return false, nil
	}
	return err == nil, err
}

// similar reports whether at least half of two files is the same, counted in
// bytes of common lines (of 64 bytes at most, as in git's diffcore-delta.c)
// against the bigger file. That is git's -M50%.
func (b *bench) similar(base, now *snapshot.Entry) (bool, error) {
	if max(base.Size, now.Size) > maxSimilar || 2*min(base.Size, now.Size) < max(base.Size, now.Size) {
		return false, nil
	}
	if err := errors.Join(b.fetch("base", base.ID), b.fetchNow("ours", now)); err != nil {
		return false, fmt.Errorf("compare %s with %s: %w", visible(now.Path), visible(base.Path), err)
	}
	old, err := spans(b.path("base"))
	if err != nil {
		return false, err
	}
	fresh, err := spans(b.path("ours"))
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

// maxText is the size beyond which git merges no file line by line (xdiff's
// MAX_XDIFF_SIZE).
const maxText = 1023 << 20

// isBinary decides as git does: by a NUL byte in the first 8000.
func isBinary(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() > maxText {
		return true, err
	}
	head := make([]byte, 8000)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return bytes.IndexByte(head[:n], 0) >= 0, err
}
