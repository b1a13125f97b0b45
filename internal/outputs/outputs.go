package outputs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// The names of the folders that patterns count from.
const (
	RootWorkspace = "workspace"
	RootOutput    = "output"
	RootArtifacts = "artifacts"
)

// Roots are the session's folders, absolute; one that is "" has no files.
type Roots struct {
	Workspace string
	Output    string // SUPERQODE_OUTPUT_DIR
	Artifacts string // SUPERQODE_ARTIFACT_DIR
}

func (r Roots) list() [][2]string {
	return [][2]string{{RootWorkspace, r.Workspace}, {RootOutput, r.Output}, {RootArtifacts, r.Artifacts}}
}

// relative returns which folder an absolute pattern is in, and its path there.
func (r Roots) relative(glob string) (root, rel string) {
	for _, one := range r.list() {
		if one[1] == "" {
			continue
		}
		if rel, ok := strings.CutPrefix(glob, strings.TrimRight(one[1], "/")+"/"); ok && rel != "" {
			return one[0], rel
		}
	}
	return "", ""
}

// The default limits.
const (
	DefaultMaxFiles      = 100
	DefaultMaxFileBytes  = 4 << 20
	DefaultMaxTotalBytes = 64 << 20
)

// maxSkipped is how many skipped files are listed; all are counted.
const maxSkipped = 1000

// Limits bound a selection; 0 is the default.
type Limits struct {
	MaxFiles      int   `json:"max_files"`
	MaxFileBytes  int64 `json:"max_file_bytes"`
	MaxTotalBytes int64 `json:"max_total_bytes"`
}

// Options say what to select.
type Options struct {
	Roots    Roots
	Patterns []string
	Limits
	Inline bool // hold the contents in File.Text
}

// File is one selected file.
type File struct {
	Root   string // workspace, output or artifacts
	Path   string // slash-separated, relative to that folder
	Size   int64
	SHA256 string // 64 hex digits
	Mode   fs.FileMode
	Data   []byte // with Options.Inline
}

// Skipped is one file that matched and was not taken.
type Skipped struct {
	Root   string
	Path   string
	Reason string
}

// Cut says what a limit kept out: files that matched and would have been taken.
type Cut struct {
	Files   int
	Bytes   int64
	Reasons []string
}

// Selection is the result of the patterns.
type Selection struct {
	Files        []File    // in the order of root and path, each once
	Bytes        int64     // of all of them
	Skipped      []Skipped // the first 1000
	SkippedCount int
	Cut          *Cut     // nil: no limit was reached
	Unmatched    []string // patterns that match no file

	roots Roots
}

// Select finds the files and hashes them. An unreadable file is skipped; the error
// wraps superqode.ErrUsage for a bad pattern.
func Select(ctx context.Context, opt Options) (*Selection, error) {
	opt = opt.filled()
	var patterns []*pattern
	for _, text := range opt.Patterns {
		p, err := parsePattern(text, opt.Roots)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	s := &selector{opt: opt, sel: &Selection{roots: opt.Roots}}
	for _, one := range opt.Roots.list() {
		var mine []*pattern
		for _, p := range patterns {
			if p.root == one[0] {
				mine = append(mine, p)
			}
		}
		if len(mine) == 0 || one[1] == "" {
			continue
		}
		if err := s.root(ctx, one[0], one[1], mine); err != nil {
			return nil, err
		}
	}
	for _, p := range patterns {
		if !p.seen {
			s.sel.Unmatched = append(s.sel.Unmatched, p.text)
		}
	}
	return s.sel, ctx.Err()
}

func (o Options) filled() Options {
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = DefaultMaxFileBytes
	}
	if o.MaxTotalBytes <= 0 {
		o.MaxTotalBytes = DefaultMaxTotalBytes
	}
	return o
}

// Open opens a selected file again; like everything here it follows no link that
// leads out.
func (s *Selection) Open(f File) (*os.File, error) {
	for _, one := range s.roots.list() {
		if one[0] != f.Root {
			continue
		}
		root, err := atomicfile.OpenRoot(one[1])
		if err != nil {
			return nil, err
		}
		defer root.Close()
		file, _, err := openRegular(root, filepath.FromSlash(f.Path))
		return file, err
	}
	return nil, fs.ErrNotExist
}

// reason explains why a file cannot be opened.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}
