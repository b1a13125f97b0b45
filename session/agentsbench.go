package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/snapshot"
)

// mergeBench is a bench on which agents' files are merged with each other.
type mergeBench struct {
	*bench
	labels [2]string // of the two sides, in files with marks
	marked int
	kept   int // how many of the bench's results are in the store
}

func (s *Session) openMergeBench(ctx context.Context) (*mergeBench, error) {
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	b, err := s.openBench(ctx)
	if err != nil {
		return nil, err
	}
	b.origin = ""
	return &mergeBench{bench: b}, nil
}

// merge is the merger of the bench. Files that are too big for the store count
// as binary: git merges none of their size either.
func (b *mergeBench) merge(ctx context.Context) merger {
	merge := b.bench.merge(ctx)
	return func(base, ours, theirs *snapshot.Entry) (snapshot.Entry, bool, bool, error) {
		if base.IsLarge() || ours.IsLarge() || theirs.IsLarge() {
			return snapshot.Entry{}, false, true, nil
		}
		return merge(base, ours, theirs)
	}
}

// similar is bench.similar for files that are in the store.
func (b *mergeBench) similar(base, now *snapshot.Entry) (bool, error) {
	if base.IsLarge() || now.IsLarge() {
		return false, nil
	}
	return b.bench.similar(base, now)
}

// marks writes the merge of two texts that conflict, with git's marks around each
// place and the base between them, and returns the lines of the base that both
// sides changed.
func (b *mergeBench) marks(ctx context.Context, base, ours, theirs *snapshot.Entry) (name string, lines []LineRange, err error) {
	if base == nil {
		err = os.WriteFile(b.path("base"), nil, 0o600)
	} else {
		err = b.fetch("base", base.ID)
	}
	if err = errors.Join(err, b.fetchNow("ours", ours), b.fetchNow("theirs", theirs)); err != nil {
		return "", nil, err
	}
	for _, name := range []string{"ours", "theirs"} {
		if binary, err := isBinary(b.path(name)); binary || err != nil {
			return "", nil, err
		}
	}
	g, err := b.s.m.git(ctx)
	if err != nil {
		return "", nil, err
	}
	b.marked++
	name = "marked-" + strconv.Itoa(b.marked)
	out, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	err = g.Run(ctx, git.Cmd{
		Dir: b.dir, Stdout: out, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.dir)},
		Args: []string{"merge-file", "-p", "-q", "--diff3", "-L", b.labels[0], "-L", "base", "-L", b.labels[1], "ours", "base", "theirs"},
	})
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code > 0 && exit.Code < 128 {
		err = nil
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return "", nil, err
	}
	lines, err = b.overlap(ctx)
	return name, lines, err
}

// overlap returns the lines of the bench's base that both of its sides changed.
func (b *bench) overlap(ctx context.Context) ([]LineRange, error) {
	ours, err := b.hunks(ctx, "base", "ours")
	if err != nil {
		return nil, err
	}
	theirs, err := b.hunks(ctx, "base", "theirs")
	if err != nil {
		return nil, err
	}
	return overlaps(ours, theirs), nil
}

// hunks compares two files of the bench line by line.
func (b *bench) hunks(ctx context.Context, old, fresh string) ([]Hunk, error) {
	g, err := b.s.m.git(ctx)
	if err != nil {
		return nil, err
	}
	var read hunkCollector
	err = g.Run(ctx, git.Cmd{
		Dir: b.dir, Stdout: &read, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.dir), "GIT_DIR=" + b.s.store.Dir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + b.dir, "XDG_CONFIG_HOME=" + b.dir},
		Args: []string{"diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "-U0", "--", old, fresh},
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

// keep puts what was merged into the store.
func (b *mergeBench) keep(ctx context.Context) error {
	if len(b.made) == b.kept {
		return nil
	}
	var list []snapshot.Entry
	for hex, name := range b.made {
		id, err := snapshot.ParseID(hex)
		if err != nil {
			return err
		}
		st, err := os.Stat(b.path(name))
		if err != nil {
			return err
		}
		list = append(list, snapshot.Entry{Path: name, Kind: snapshot.File, Perm: 0o600, Size: st.Size(), ID: id})
	}
	b.kept = len(b.made)
	return b.s.store.WriteBlobs(ctx, b.dir, list)
}
