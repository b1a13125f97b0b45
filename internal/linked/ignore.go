package linked

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

// includeFile in the origin names ignored files that come along.
const includeFile = ".worktreeinclude"

// judge answers which untracked paths git ignores.
type judge interface {
	ignored(paths []superqode.RelPath) ([]bool, error)
	close()
}

// judge returns what answers. In a sparse checkout git may read a .gitignore
// from the index, which check-ignore does not see; there judge lists all
// ignored paths instead.
func (c *creation) judge(ctx context.Context) (judge, error) {
	if c.hasSparseIgnore() {
		return c.listIgnored(ctx)
	}
	p, err := c.plainJudge(ctx)
	if errors.Is(err, errNotPlain) {
		return c.checkIgnore(ctx)
	}
	return p, err
}

// checkIgnore starts git check-ignore, to ask it about each level of untracked
// folders in turn. Without --no-index it would compare every path with the
// whole index.
func (c *creation) checkIgnore(ctx context.Context) (judge, error) {
	args := []string{"check-ignore", "-z", "--stdin", "--verbose", "--non-matching", "--no-index"}
	cmd := c.Repo.Command(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args})
	j := &checkIgnore{wait: cmd.Wait}
	cmd.Stderr = &j.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.in, j.out = in, bufio.NewReaderSize(out, 1<<16)
	return j, cmd.Start()
}

// hasSparseIgnore reports whether git reads a .gitignore from the index.
func (c *creation) hasSparseIgnore() bool {
	if !c.config.Bool("core.sparsecheckout", false) {
		return false
	}
	for i := range c.index.Len() {
		if p := string(c.index.Path(i)); strings.HasSuffix(p, ".gitignore") && c.index.At(i).SkipWorktree {
			return true
		}
	}
	return false
}

// checkIgnore is a running git check-ignore.
type checkIgnore struct {
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	wait   func() error
}

// ignored asks for each path and reads the answers meanwhile: source, line,
// pattern and path, each ended by NUL. No pattern, or one that begins with "!",
// means not ignored. The "./" keeps a path from being read as pathspec magic.
func (j *checkIgnore) ignored(paths []superqode.RelPath) ([]bool, error) {
	wrote := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(j.in, 1<<16)
		for _, p := range paths {
			w.WriteString("./") // bufio keeps the first error for Flush
			w.WriteString(string(p))
			w.WriteByte(0)
		}
		wrote <- w.Flush()
	}()
	answers := make([]bool, len(paths))
	for i := range answers {
		var pattern string
		for field := range 4 {
			s, err := j.out.ReadString(0)
			if err != nil {
				j.close() // which also ends a waiting writer
				return nil, fmt.Errorf("git check-ignore: %w", errors.Join(j.complaint(), <-wrote, err))
			}
			if field == 2 {
				pattern = s[:len(s)-1]
			}
		}
		answers[i] = pattern != "" && pattern[0] != '!'
	}
	return answers, <-wrote
}

func (j *checkIgnore) complaint() error {
	if msg := strings.TrimSpace(j.stderr.String()); msg != "" {
		return errors.New(strings.TrimPrefix(msg, "fatal: "))
	}
	return nil
}

// close ends git. Its exit code only says whether a path was ignored.
func (j *checkIgnore) close() {
	_ = j.in.Close() // a second close is harmless
	_ = j.wait()
}

// ignoredSet is the listing of all ignored paths.
type ignoredSet map[superqode.RelPath]bool

func (c *creation) listIgnored(ctx context.Context) (judge, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}
	out, err := c.Repo.Output(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args})
	set := ignoredSet{}
	for p := range strings.SplitSeq(string(out), "\x00") {
		set[superqode.RelPath(strings.TrimSuffix(p, "/"))] = true
	}
	return set, err
}

func (s ignoredSet) ignored(paths []superqode.RelPath) ([]bool, error) {
	answers := make([]bool, len(paths))
	for i, p := range paths {
		answers[i] = s[p]
	}
	return answers, nil
}

func (s ignoredSet) close() {}

// includedPaths lists the untracked files that match the patterns of
// .worktreeinclude and of the caller. git is asked only when possible says that
// some entry may match.
func (c *creation) includedPaths(ctx context.Context, possible func(patterns []string) bool) ([]string, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored"}
	patterns := c.Include
	file := filepath.Join(c.Repo.TopLevel, includeFile)
	data, err := atomicfile.ReadThrough(file)
	switch {
	case err == nil:
		args = append(args, "--exclude-from="+file)
		patterns = append(strings.Split(string(data), "\n"), patterns...)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, atomicfile.ErrNotRegular):
		return nil, err
	}
	for _, p := range c.Include {
		args = append(args, "--exclude="+p)
	}
	if !possible(patterns) {
		return nil, nil
	}
	out, err := c.Repo.Output(ctx, git.Cmd{Dir: c.Repo.TopLevel, Args: args})
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}
