package coordinator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// TargetKind says what a claim is on.
type TargetKind string

// The kinds of target.
const (
	KindFile TargetKind = "file" // one file, or lines of it; it need not exist
	KindDir  TargetKind = "dir"  // everything below a folder
	KindGlob TargetKind = "glob" // every path that a pattern matches (doublestar)
)

// Target is what a claim is on. Path is relative to the workspace, clean and
// slash-separated; "." is the workspace itself. Only a file has Lines.
type Target struct {
	Kind  TargetKind
	Path  string
	Lines Lines
}

// maxLine bounds line numbers, so that arithmetic on them cannot overflow.
const maxLine = 1<<31 - 2

// SplitRange takes the range off FILE[:START-END]; N alone is N-N. What follows
// the last colon is a range when it holds digits and dashes only, and then it
// must be one. A final colon ends a name: "a:1-2:" is the file "a:1-2".
func SplitRange(arg string) (name string, lines Lines, err error) {
	i := strings.LastIndexByte(arg, ':')
	if i < 0 {
		return arg, Lines{}, nil
	}
	name, text := arg[:i], arg[i+1:]
	if text == "" {
		return name, Lines{}, nil
	}
	if strings.Trim(text, "0123456789-") != "" {
		return arg, Lines{}, nil
	}
	first, last, two := strings.Cut(text, "-")
	if !two {
		last = first
	}
	bad := func(why string) error {
		err := superqode.Errorf(superqode.ErrUsage, "%q: %q is not a range of lines: %s", arg, text, why)
		return superqode.WithHint(err,
			"FILE:10-20; a file whose name ends that way is written with a colon behind it: %q", arg+":")
	}
	if lines.Start, err = lineNumber(first); err != nil {
		return "", Lines{}, bad(err.Error())
	}
	if lines.End, err = lineNumber(last); err != nil {
		return "", Lines{}, bad(err.Error())
	}
	if lines.End < lines.Start {
		return "", Lines{}, bad("it ends before it starts")
	}
	return name, lines, nil
}

func lineNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case strings.Trim(s, "0123456789") != "" || s == "":
		return 0, fmt.Errorf("expected two numbers with a dash between them")
	case err != nil || n > maxLine:
		return 0, fmt.Errorf("no file has %s lines", s)
	case n == 0:
		return 0, fmt.Errorf("the first line is line 1")
	}
	return int(n), nil
}

// IsPattern reports whether a name holds wildcards.
func IsPattern(name string) bool { return strings.ContainsAny(name, `*?[{\`) }

// NewTarget makes a target, or returns an error that wraps superqode.ErrUsage.
func NewTarget(kind TargetKind, name string, lines Lines) (Target, error) {
	t := Target{kind, name, lines}
	if err := t.check(); err != nil {
		return Target{}, superqode.Errorf(superqode.ErrUsage, "claim on %q: %v", name, err)
	}
	return t, nil
}

func (t Target) check() error {
	switch {
	case t.Kind != KindFile && !t.Lines.Whole():
		return fmt.Errorf("only a file has lines")
	case !t.Lines.Whole() && (t.Lines.Start < 1 || t.Lines.End < t.Lines.Start || t.Lines.End > maxLine):
		return fmt.Errorf("%d-%d is not a range of lines", t.Lines.Start, t.Lines.End)
	}
	switch t.Kind {
	case KindDir:
		if t.Path == "." {
			return nil
		}
	case KindGlob:
		if !doublestar.ValidatePattern(t.Path) {
			return fmt.Errorf("it is not a pattern")
		}
		if n := len(alternatives(t.Path)); n > maxAlternatives {
			return fmt.Errorf("it has more than %d alternatives in braces", maxAlternatives)
		}
	case KindFile:
	default:
		return fmt.Errorf("unknown kind %q", string(t.Kind))
	}
	if path.Clean(t.Path) != t.Path && t.Kind == KindGlob {
		return fmt.Errorf("the pattern is not clean")
	}
	_, err := superqode.ParseRelPath(t.Path)
	return err
}

// String writes the target as the command line takes it.
func (t Target) String() string {
	switch {
	case t.Kind == KindDir && t.Path != ".":
		return t.Path + "/"
	case !t.Lines.Whole():
		return fmt.Sprintf("%s:%d-%d", t.Path, t.Lines.Start, t.Lines.End)
	}
	if name, _, err := SplitRange(t.Path); err != nil || name != t.Path {
		return t.Path + ":"
	}
	return t.Path
}

type targetJSON struct {
	Kind      TargetKind `json:"kind"`
	Path      string     `json:"path"`
	PathBytes string     `json:"path_bytes,omitempty"`
	Start     int        `json:"start,omitempty"`
	End       int        `json:"end,omitempty"`
}

// MarshalJSON writes kind, path and, of a range, start and end. A path that is
// not UTF-8 is exact in path_bytes.
func (t Target) MarshalJSON() ([]byte, error) {
	j := targetJSON{Kind: t.Kind, Start: t.Lines.Start, End: t.Lines.End}
	j.Path, j.PathBytes = superqode.JSONPath(t.Path)
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote and checks it.
func (t *Target) UnmarshalJSON(b []byte) error {
	var j targetJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.PathBytes != "" {
		raw, err := base64.StdEncoding.DecodeString(j.PathBytes)
		if err != nil {
			return err
		}
		j.Path = string(raw)
	}
	*t = Target{j.Kind, j.Path, Lines{j.Start, j.End}}
	return t.check()
}

// ParseTarget reads FILE[:START-END] as a person or a program typed it in dir.
// roots are the folders in which it may lie, the workspace or the origin; the
// target is relative to the one that holds it. A name that exists is taken as it
// is; one that does not and has wildcards is a pattern; one that ends with a
// slash, or is a folder, is a folder.
func ParseTarget(dir string, roots []string, arg string) (Target, error) {
	if arg == "" || strings.ContainsRune(arg, 0) {
		return Target{}, superqode.Errorf(superqode.ErrUsage, "%q is not a path", arg)
	}
	name, lines, err := SplitRange(arg)
	if err != nil {
		return Target{}, err
	}
	if name == "" {
		return Target{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q names no file", arg), "FILE:10-20")
	}
	if name != arg && !atomicfile.Exists(superqode.Under(dir, name)) && atomicfile.Exists(superqode.Under(dir, arg)) {
		name, lines = arg, Lines{} // a:1-2 is a file, and a is none
	}
	full := filepath.Clean(superqode.Under(dir, name))
	kind := KindFile
	st, err := os.Lstat(full)
	switch {
	case err == nil && st.IsDir(), strings.HasSuffix(name, "/"), full == filepath.Clean(dir):
		kind = KindDir
	case err != nil && IsPattern(name):
		kind = KindGlob
	}
	_, rel, ok := locate(roots, full)
	if !ok {
		return Target{}, superqode.Errorf(superqode.ErrUsage, "%s is outside of %s",
			text.Printable(arg), text.Printable(roots[0]))
	}
	if rel == "." {
		kind = KindDir
	}
	return NewTarget(kind, rel, lines)
}

// locate returns the first of the roots that an absolute path lies in, as it is written or where its
// links lead, and the path relative to it. An empty root is none.
func locate(roots []string, full string) (root, rel string, ok bool) {
	for _, try := range []string{full, filepath.Join(superqode.RealPrefix(filepath.Dir(full)), filepath.Base(full))} {
		for _, root := range roots {
			rel, err := filepath.Rel(root, try)
			if root != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
				return root, rel, true
			}
		}
	}
	return "", "", false
}

// EditsOf turns what a coding agent's tool is about to do, in the folder dir, into edits of the files
// as they are. What lies below none of the roots is nobody's and left out.
func EditsOf(list []ToolEdit, dir string, roots []string) []CallEdit {
	var out []CallEdit
	for _, e := range list {
		root, rel, ok := locate(roots, filepath.Clean(superqode.Under(dir, e.Path)))
		if !ok || rel == "." {
			continue
		}
		lines := []Lines{{}}
		if now, err := readBelow(root, rel); err == nil {
			lines = e.Lines(now)
		}
		out = append(out, CallEdit{Bytes: []byte(rel), Lines: lines})
	}
	return out
}
