package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// StoreScratch is a scratch folder whose sides are all in the store: it merges
// the files of agents with each other.
type StoreScratch struct {
	*Scratch
	Labels [2]string // of the two sides, in files with conflict markers
	marked int
	kept   int // how many of the results are in the store
}

// OpenStoreScratch makes a scratch folder without an origin.
func OpenStoreScratch(ctx context.Context, opt Options) (*StoreScratch, error) {
	opt.Origin = ""
	b, err := Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &StoreScratch{Scratch: b}, nil
}

// Merge merges two files of the folder. Files that are too big for the store
// count as binary: git does not merge files of that size either.
func (b *StoreScratch) Merge(ctx context.Context) merger {
	merge := b.Scratch.Merge(ctx)
	return func(base, ours, theirs *snapshot.Entry) (snapshot.Entry, bool, bool, error) {
		if base.IsLarge() || ours.IsLarge() || theirs.IsLarge() {
			return snapshot.Entry{}, false, true, nil
		}
		return merge(base, ours, theirs)
	}
}

// Similar is Scratch.Similar for files that are in the store.
func (b *StoreScratch) Similar(base, now *snapshot.Entry) (bool, error) {
	if base.IsLarge() || now.IsLarge() {
		return false, nil
	}
	return b.Scratch.Similar(base, now)
}

// Marks writes the merge of two conflicting texts, with git's conflict markers
// around each place and the base between them, and returns the lines of the
// base that both sides changed.
func (b *StoreScratch) Marks(ctx context.Context, base, ours, theirs *snapshot.Entry) (name string, lines []LineRange, err error) {
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
	for _, name := range []string{"ours", "theirs"} {
		if binary, err := IsBinary(b.Path(name)); binary || err != nil {
			return "", nil, err
		}
	}
	b.marked++
	name = "marked-" + strconv.Itoa(b.marked)
	out, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	err = b.git.Run(ctx, git.Cmd{
		Dir: b.Dir, Stdout: out, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.Dir)},
		Args: []string{"merge-file", "-p", "-q", "--diff3", "-L", b.Labels[0], "-L", "base", "-L", b.Labels[1], "ours", "base", "theirs"},
	})
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code > 0 && exit.Code < 128 {
		err = nil
	}
	if err = errors.Join(err, out.Close()); err != nil {
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
		Dir: b.Dir, Stdout: &read, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(b.Dir), "GIT_DIR=" + b.store.Dir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + b.Dir, "XDG_CONFIG_HOME=" + b.Dir},
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

// Keep puts the results of merges into the store.
func (b *StoreScratch) Keep(ctx context.Context) error {
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
		list = append(list, snapshot.Entry{Path: superqode.RelPath(name), Kind: snapshot.File, Perm: 0o600, Size: st.Size(), ID: id})
	}
	b.kept = len(b.Made)
	return b.store.WriteBlobs(ctx, b.Dir, list)
}
