package snapshot

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// DiffOptions says what Diff prints.
type DiffOptions struct {
	Base, Final string   // commits or refs of the store
	Paths       []string // only these files and folders, taken literally; empty for all
	Stat        bool     // git's --stat table instead of the patch
	Color       bool     // with git's default colours
	Context     int      // lines of context; 0 means git's default, 3
	Bare        bool     // no line of context at all
}

// Diff writes the difference of two commits of the store to w, as a patch that
// git apply takes: binary contents and whole ids included, renames found.
//
// No configuration and no attributes of the user take part. What counts as
// binary is decided by git from the contents alone (a NUL byte in the first
// 8000), never by a "binary" or "-diff" attribute, and textconv is off: such a
// patch would not apply, or not to the raw bytes.
func (s *Store) Diff(ctx context.Context, opt DiffOptions, w io.Writer) error {
	args := []string{"diff-tree", "-r"}
	if opt.Stat {
		args = append(args, "--stat")
	} else {
		args = append(args, "-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/")
	}
	if opt.Color {
		args = append(args, "--color=always")
	}
	if opt.Bare {
		args = append(args, "-U0")
	}
	if opt.Context > 0 {
		args = append(args, "-U"+strconv.Itoa(opt.Context))
	}
	for _, rev := range []string{opt.Base, opt.Final} {
		if rev == "" || strings.HasPrefix(rev, "-") {
			return fmt.Errorf("diff: bad revision %q", rev)
		}
	}
	args = append(append(args, sameForAll()...), opt.Base, opt.Final, "--")
	return s.run(ctx, git.Cmd{Args: append(args, opt.Paths...), Stdout: w})
}

// sameForAll are the options that make a comparison the same for every user.
func sameForAll() []string { return []string{"-M", "--no-ext-diff", "--no-textconv", "--no-relative"} }
