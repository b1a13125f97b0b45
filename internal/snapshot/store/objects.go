package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Reader reads any number of contents, one after the other, by one git cat-file
// process (18-38 µs each; go-git would load the origin's whole pack index first).
// Close it.
type Reader struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	format snapshot.Format
}

func (r *repository) reader(ctx context.Context, how string) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Reader{cmd: r.git.Command(ctx, git.Cmd{Dir: r.dir, Args: []string{"cat-file", how}, Env: r.env()}), cancel: cancel, format: r.format}
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err == nil {
		var out io.Reader
		if out, err = c.cmd.StdoutPipe(); err == nil {
			c.in, c.out = in, bufio.NewReaderSize(out, 64<<10)
			err = c.cmd.Start()
		}
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	return c, nil
}

// OpenReader starts a process that reads contents of the store and of what it
// borrows from.
func (s *Store) OpenReader(ctx context.Context) (*Reader, error) { return s.reader(ctx, "--batch") }

// Close ends the process. What it said matters only if it died.
func (c *Reader) Close() error {
	err := c.in.Close()
	_, derr := io.Copy(io.Discard, c.out)
	werr := c.cmd.Wait()
	c.cancel()
	if werr != nil {
		return fmt.Errorf("git cat-file: %w: %s", werr, bytes.TrimSpace(c.stderr.Bytes()))
	}
	return errors.Join(err, derr)
}

// header reads one answer's first line. Why there is none, only Close can say.
func (c *Reader) header() (kind string, size int64, err error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", 0, fmt.Errorf("git cat-file: %w", err)
	}
	f := strings.Fields(line)
	if len(f) == 2 && f[1] == "missing" {
		return "", 0, superqode.Errorf(superqode.ErrNotFound, "object %s is neither in the store nor in the origin", f[0])
	}
	if len(f) == 3 {
		size, err = strconv.ParseInt(f[2], 10, 64)
	}
	if len(f) != 3 || err != nil {
		return "", 0, fmt.Errorf("git cat-file answered %q", line)
	}
	return f[1], size, nil
}

// Copy writes the blob id to w and checks on the way that it is that blob. The
// error wraps superqode.ErrNotFound when neither store nor origin has it, and
// superqode.ErrVerification when it is damaged.
func (c *Reader) Copy(id snapshot.ID, w io.Writer) error {
	if id.IsZero() {
		return errors.New("the content id is not known")
	}
	if _, err := io.WriteString(c.in, id.String()+"\n"); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	kind, size, err := c.header()
	if err != nil {
		return err
	}
	if kind != "blob" {
		return errors.Join(fmt.Errorf("object %s is a %s, not a blob", id, kind), c.skip(size+1))
	}
	h := c.format.NewBlobHash(size)
	if _, err := io.CopyN(io.MultiWriter(w, h), c.out, size); err != nil {
		c.cancel() // the rest of the answer is of no use any more
		return fmt.Errorf("read %s: %w", id, err)
	}
	if err := c.skip(1); err != nil {
		return err
	}
	if got := snapshot.IDFrom(h.Sum(nil)); got != id {
		return superqode.Errorf(superqode.ErrVerification, "object %s is damaged: its contents are %s", id, got)
	}
	return nil
}

func (c *Reader) skip(n int64) error {
	_, err := io.CopyN(io.Discard, c.out, n)
	return err
}

// missing returns which of ids neither the store nor the origin has. It is for
// use on a process of "--batch-check".
func (c *Reader) missing(ids []snapshot.ID) (map[snapshot.ID]bool, error) {
	var in bytes.Buffer
	for _, id := range ids {
		in.WriteString(id.String() + "\n")
	}
	sent := make(chan error, 1)
	go func() { // beside the reading: both pipes may be full at once
		_, err := in.WriteTo(c.in)
		sent <- err
	}()
	missing := map[snapshot.ID]bool{}
	for _, id := range ids {
		_, _, err := c.header()
		if errors.Is(err, superqode.ErrNotFound) {
			missing[id], err = true, nil
		}
		if err != nil {
			c.cancel()
			<-sent
			return nil, err
		}
	}
	return missing, <-sent
}

// EntryAt returns the file or link at a path of a commit of the store, nil where
// there is none. Its size and a link's target are not filled in.
func (s *Store) EntryAt(ctx context.Context, rev string, path superqode.RelPath) (*snapshot.Entry, error) {
	list, err := s.listTree(ctx, rev, "--", string(path))
	if i := slices.IndexFunc(list, func(e snapshot.Entry) bool { return e.Path == path }); i >= 0 {
		return &list[i], nil
	}
	return nil, err
}

// Tree returns the files and links of a commit of the store. Sizes and links'
// targets are not filled in, and folders are left out.
func (s *Store) Tree(ctx context.Context, rev string) (*snapshot.Snapshot, error) {
	list, err := s.listTree(ctx, rev)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, snapshot.ByPath)
	return &snapshot.Snapshot{Root: s.dir, Format: s.format, Entries: list}, nil
}

// listTree runs git ls-tree on a commit.
func (r *repository) listTree(ctx context.Context, rev string, args ...string) ([]snapshot.Entry, error) {
	if err := checkRevisions(rev); err != nil {
		return nil, err
	}
	out, err := r.out(ctx, nil, append([]string{"ls-tree", "-r", "-z", "--full-tree", rev}, args...)...)
	if err != nil {
		return nil, err
	}
	var list []snapshot.Entry
	for len(out) > 0 {
		var rec string
		rec, out, _ = strings.Cut(out, "\x00")
		meta, name, ok := strings.Cut(rec, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("git ls-tree answered %q", rec)
		}
		if f[1] != "blob" && len(args) > 0 {
			continue // a submodule, of which nothing is known
		}
		e, err := treeEntry(superqode.RelPath(name), f[0], f[2])
		if err != nil {
			return nil, err
		}
		list = append(list, *e)
	}
	return list, nil
}
