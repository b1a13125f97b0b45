package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// catFile is one git cat-file process that answers any number of questions
// (18-38 µs each; go-git would load the origin's whole pack index first).
type catFile struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	format Format
}

func (s *Store) catFile(ctx context.Context, how string) (*catFile, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &catFile{cmd: s.git.Command(ctx, git.Cmd{Dir: s.dir, Args: []string{"cat-file", how}, Env: s.env()}), cancel: cancel, format: s.format}
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

// openReader starts a process that reads objects.
func (s *Store) openReader(ctx context.Context) (*catFile, error) { return s.catFile(ctx, "--batch") }

// close ends the process. What it had to say matters only if it died.
func (c *catFile) close() error {
	err := c.in.Close()
	_, derr := io.Copy(io.Discard, c.out)
	werr := c.cmd.Wait()
	c.cancel()
	if werr != nil {
		return fmt.Errorf("git cat-file: %w: %s", werr, bytes.TrimSpace(c.stderr.Bytes()))
	}
	return errors.Join(err, derr)
}

// header reads one answer's first line.
func (c *catFile) header() (kind string, size int64, err error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", 0, fmt.Errorf("git cat-file: %w: %s", err, bytes.TrimSpace(c.stderr.Bytes()))
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

// copy writes the blob id to w and checks on the way that it is that blob.
func (c *catFile) copy(id ID, w io.Writer) error {
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
	if got := IDFrom(h.Sum(nil)); got != id {
		return superqode.Errorf(superqode.ErrVerification, "object %s is damaged: its contents are %s", id, got)
	}
	return nil
}

func (c *catFile) skip(n int64) error {
	_, err := io.CopyN(io.Discard, c.out, n)
	return err
}

// missing returns which of ids neither the store nor the origin has. It is for
// use on a process of "--batch-check".
func (c *catFile) missing(ids []ID) (map[ID]bool, error) {
	var in bytes.Buffer
	for _, id := range ids {
		in.WriteString(id.String() + "\n")
	}
	sent := make(chan error, 1)
	go func() { // beside the reading: both pipes may be full at once
		_, err := in.WriteTo(c.in)
		sent <- err
	}()
	missing := map[ID]bool{}
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
