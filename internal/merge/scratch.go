package merge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Scratch is a folder of the session for merges and for files with some of
// their hunks. It does nothing in the origin.
type Scratch struct {
	git    *git.Git
	store  *store.Store
	Dir    string // the folder of its files
	blobs  *store.Reader
	origin string
	Format snapshot.Format
	n      int               // number of names given out
	Made   map[string]string // content ids of the results, in hex, and the files that have them
	kept   int               // how many of these are in the store
	Labels [2]string         // of the two sides, in files with conflict markers
}

// Fresh returns a name that no file of the folder has: two results may have the
// same content.
func (b *Scratch) Fresh(prefix string) string {
	b.n++
	return prefix + strconv.Itoa(b.n)
}

// Path is the path of the file with that name.
func (b *Scratch) Path(name string) string { return filepath.Join(b.Dir, name) }

// Prefix begins the name of each scratch folder.
const Prefix = ".apply-"

// Options says what a scratch folder works with.
type Options struct {
	Git    *git.Git
	Store  *store.Store
	Dir    string // the scratch folder is new in it
	Origin string // the folder that changes are brought into; "" for none: both sides are in the store
}

// Open makes a scratch folder; Close deletes it.
func Open(ctx context.Context, opt Options) (*Scratch, error) {
	dir, err := os.MkdirTemp(opt.Dir, Prefix+"*")
	if err != nil {
		return nil, err
	}
	b := &Scratch{git: opt.Git, store: opt.Store, Dir: dir, origin: opt.Origin, Format: opt.Store.Format(),
		Made: map[string]string{}}
	if b.blobs, err = opt.Store.OpenReader(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// Fill writes contents that were made here, or that the store has.
func (b *Scratch) Fill(id string, w io.Writer) error {
	if name, ok := b.Made[id]; ok {
		f, err := os.Open(b.Path(name))
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

// Close deletes the folder with all its results.
func (b *Scratch) Close() error { return errors.Join(b.blobs.Close(), os.RemoveAll(b.Dir)) }

// Drop removes a file of the folder.
func (b *Scratch) Drop(name string) error { return os.Remove(b.Path(name)) }

// fetchNow writes what a file holds now into a file of the folder: the origin's
// content, or the result of an earlier merge.
func (b *Scratch) fetchNow(name string, e *snapshot.Entry) error {
	if b.origin != "" {
		return b.FetchFrom(b.origin, name, e)
	}
	return b.Fetch(name, e.ID)
}

// Write writes a text into a file of the folder.
func (b *Scratch) Write(name string, text []byte) (snapshot.Entry, error) {
	if err := os.WriteFile(b.Path(name), text, 0o600); err != nil {
		return snapshot.Entry{}, err
	}
	return b.result(name)
}

// result takes a finished file and returns its contents as an entry.
func (b *Scratch) result(name string) (snapshot.Entry, error) {
	sn := &snapshot.Snapshot{Root: b.Dir, Format: b.Format,
		Entries: []snapshot.Entry{{Path: superqode.RelPath(name), Kind: snapshot.File}}}
	problems, err := snapshot.HashMissing(context.Background(), sn)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err == nil {
		b.Made[sn.Entries[0].ID.String()] = name
	}
	return sn.Entries[0], err
}

// Fetch writes contents that were made here, or that the store has, into a file.
func (b *Scratch) Fetch(name string, id snapshot.ID) error {
	return b.create(name, func(w io.Writer) error { return b.Fill(id.String(), w) })
}

// create writes a file of the folder.
func (b *Scratch) create(name string, fill func(w io.Writer) error) error {
	f, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// Text fetches contents of the store into a file and returns them if they are
// text.
func (b *Scratch) Text(name string, id snapshot.ID) (data []byte, isText bool, err error) {
	if err := b.Fetch(name, id); err != nil {
		return nil, false, err
	}
	if binary, err := IsBinary(b.Path(name)); binary || err != nil {
		return nil, false, err
	}
	data, err = os.ReadFile(b.Path(name))
	return data, true, err
}

// FetchFrom writes what a file of a folder holds into a file. It must not have
// changed since Look.
func (b *Scratch) FetchFrom(dir, name string, e *snapshot.Entry) error {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in, err := root.OpenFile(string(e.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
	if err != nil {
		return err
	}
	defer in.Close()
	h := b.Format.NewBlobHash(e.Size)
	err = b.create(name, func(w io.Writer) error {
		_, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(in, e.Size+1))
		return err
	})
	if err == nil && snapshot.IDFrom(h.Sum(nil)) != e.ID {
		err = superqode.Errorf(superqode.ErrConflict, "%s changed meanwhile", text.Printable(e.Path))
	}
	return err
}

// Merge merges with git merge-file. Of files in the store those that are too big
// for it count as binary: git does not merge files of that size either.
func (b *Scratch) Merge(ctx context.Context) merger {
	return func(base, ours, theirs *snapshot.Entry) (merged snapshot.Entry, ok, binary bool, err error) {
		if b.origin == "" && (base.IsLarge() || ours.IsLarge() || theirs.IsLarge()) {
			return merged, false, true, nil
		}
		name := b.Fresh("merged-")
		err = errors.Join(context.Cause(ctx), b.Fetch("base", base.ID), b.fetchNow("ours", ours),
			b.Fetch("theirs", theirs.ID))
		if err == nil {
			ok, binary, err = b.MergeTexts(ctx, name)
		}
		switch {
		case err != nil:
			return merged, false, false, fmt.Errorf("merge %s: %w", text.Printable(ours.Path), err)
		case binary:
			return merged, false, true, nil
		case !ok:
			return merged, false, false, b.Drop(name)
		}
		merged, err = b.result(name)
		return merged, true, false, err
	}
}

// MergeTexts reports whether the files base, ours and theirs merge without a
// conflict, unless one of them is binary, and writes the merge.
func (b *Scratch) MergeTexts(ctx context.Context, name string) (ok, binary bool, err error) {
	if binary, err = b.anyBinary("base", "ours", "theirs"); binary || err != nil {
		return false, binary, err
	}
	ok, err = b.mergeFile(ctx, name, "-L", sideOrigin, "-L", "base", "-L", sideSession)
	return ok, false, err
}

func (b *Scratch) anyBinary(names ...string) (bool, error) {
	for _, name := range names {
		if binary, err := IsBinary(b.Path(name)); binary || err != nil {
			return binary, err
		}
	}
	return false, nil
}

// mergeFile runs git merge-file. It reports whether there was no conflict.
func (b *Scratch) mergeFile(ctx context.Context, name string, args ...string) (bool, error) {
	clean := true
	err := b.create(name, func(w io.Writer) error {
		err := b.git.Run(ctx, git.Cmd{
			Dir: b.Dir, Stdout: w, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.Dir)},
			Args: slices.Concat([]string{"merge-file", "-p", "-q"}, args, []string{"ours", "base", "theirs"}),
		})
		exit, failed := errors.AsType[*git.ExitError](err)
		if failed && exit.Code > 0 && exit.Code < 128 { // the number of conflicts
			clean, err = false, nil
		}
		return err
	})
	return clean && err == nil, err
}

// maxText is the size beyond which git merges no file line by line (xdiff's
// MAX_XDIFF_SIZE).
const maxText = 1023 << 20

// IsBinary decides as git does: by a NUL byte in the first 8000 bytes.
func IsBinary(path string) (bool, error) {
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

// Marks writes the merge of two conflicting texts, with git's conflict markers
// around each place and the base between them, and returns the lines of the
// base that both sides changed.
func (b *Scratch) Marks(
	ctx context.Context, base, ours, theirs *snapshot.Entry,
) (name string, lines []LineRange, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", nil, err
	}
	if base == nil {
		err = os.WriteFile(b.Path("base"), nil, 0o600)
	} else {
		err = b.Fetch("base", base.ID)
	}
	if err = errors.Join(err, b.fetchNow("ours", ours), b.fetchNow("theirs", theirs)); err != nil {
		return "", nil, err
	}
	if binary, err := b.anyBinary("ours", "theirs"); binary || err != nil {
		return "", nil, err
	}
	name = b.Fresh("marked-")
	if _, err := b.mergeFile(ctx, name, "--diff3", "-L", b.Labels[0], "-L", "base", "-L", b.Labels[1]); err != nil {
		return "", nil, err
	}
	lines, err = b.Overlap(ctx)
	return name, lines, err
}

// Overlap returns the lines of the base that both sides changed.
func (b *Scratch) Overlap(ctx context.Context) ([]LineRange, error) {
	ours, err := b.Hunks(ctx, "base", "ours")
	if err != nil {
		return nil, err
	}
	theirs, err := b.Hunks(ctx, "base", "theirs")
	if err != nil {
		return nil, err
	}
	return overlaps(ours, theirs), nil
}

// Hunks compares two files of the folder line by line.
func (b *Scratch) Hunks(ctx context.Context, old, fresh string) ([]Hunk, error) {
	var read HunkCollector
	err := b.git.Run(ctx, git.Cmd{
		Dir: b.Dir, Stdout: &read, Env: []string{
			"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.Dir), "GIT_DIR=" + b.store.Dir(),
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + b.Dir, "XDG_CONFIG_HOME=" + b.Dir,
		},
		Args: []string{"diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "-U0", "--", old,
			fresh},
	})
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code == 1 { // they differ
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("compare two versions: %w", err)
	}
	return read.hunks(), nil
}

// Keep puts the results of merges into the store.
func (b *Scratch) Keep(ctx context.Context) error {
	if len(b.Made) == b.kept {
		return context.Cause(ctx)
	}
	var list []snapshot.Entry
	for hex, name := range b.Made {
		id, err := snapshot.ParseID(hex)
		if err != nil {
			return err
		}
		st, err := os.Stat(b.Path(name))
		if err != nil {
			return err
		}
		list = append(list, snapshot.Entry{
			Path: superqode.RelPath(name), Kind: snapshot.File, Perm: 0o600, Size: st.Size(), ID: id,
		})
	}
	b.kept = len(b.Made)
	return b.store.WriteBlobs(ctx, b.Dir, list)
}

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
