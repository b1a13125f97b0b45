package merge

import (
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
	b := &Scratch{git: opt.Git, store: opt.Store, Dir: dir, origin: opt.Origin, Format: opt.Store.Format(), Made: map[string]string{}}
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
		return b.fetchOrigin(name, e)
	}
	f, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.Fill(e.ID.String(), f), f.Close())
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
	sn := &snapshot.Snapshot{Root: b.Dir, Format: b.Format, Entries: []snapshot.Entry{{Path: superqode.RelPath(name), Kind: snapshot.File}}}
	problems, err := snapshot.HashMissing(context.Background(), sn)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err == nil {
		b.Made[sn.Entries[0].ID.String()] = name
	}
	return sn.Entries[0], err
}

// Fetch writes contents of the store into a file.
func (b *Scratch) Fetch(name string, id snapshot.ID) error {
	f, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.blobs.Copy(id, f), f.Close())
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

// fetchOrigin writes what a file of the origin holds into a file. It must not
// have changed since Look.
func (b *Scratch) fetchOrigin(name string, e *snapshot.Entry) error {
	return b.FetchFrom(b.origin, name, e)
}

// FetchFrom is fetchOrigin for any folder.
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
	out, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	h := b.Format.NewBlobHash(e.Size)
	_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, e.Size+1))
	if err = errors.Join(err, out.Close()); err == nil && snapshot.IDFrom(h.Sum(nil)) != e.ID {
		err = superqode.Errorf(superqode.ErrConflict, "%s changed meanwhile", text.Printable(e.Path))
	}
	return err
}

// Merge merges with git merge-file.
func (b *Scratch) Merge(ctx context.Context) merger {
	return func(base, ours, theirs *snapshot.Entry) (merged snapshot.Entry, ok, binary bool, err error) {
		if err = errors.Join(context.Cause(ctx), b.Fetch("base", base.ID), b.fetchNow("ours", ours), b.Fetch("theirs", theirs.ID)); err != nil {
			return merged, false, false, fmt.Errorf("merge %s: %w", text.Printable(ours.Path), err)
		}
		for _, name := range []string{"base", "ours", "theirs"} {
			if binary, err = IsBinary(b.Path(name)); binary || err != nil {
				return merged, false, binary, err
			}
		}
		name := b.Fresh("merged-")
		ok, err = b.MergeFile(ctx, name)
		if err != nil {
			return merged, false, false, fmt.Errorf("merge %s: %w", text.Printable(ours.Path), err)
		}
		if !ok {
			return merged, false, false, os.Remove(b.Path(name))
		}
		merged, err = b.result(name)
		return merged, true, false, err
	}
}

// MergeFile reports whether the three files merge without a conflict.
func (b *Scratch) MergeFile(ctx context.Context, name string) (bool, error) {
	out, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	err = b.git.Run(ctx, git.Cmd{
		Dir: b.Dir, Stdout: out, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.Dir)},
		Args: []string{"merge-file", "-p", "-q", "-L", sideOrigin, "-L", "base", "-L", sideSession, "ours", "base", "theirs"},
	})
	err = errors.Join(err, out.Close())
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code > 0 && exit.Code < 128 { // the number of conflicts
		return false, nil
	}
	return err == nil, err
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
