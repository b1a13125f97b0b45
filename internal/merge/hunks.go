package merge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Hunks are numbered from 1 over a whole diff as it is printed. A file without
// hunks of text (binary, only a mode or a name changed, empty) counts as one.

// HunkRange is one or more hunks by their numbers, both included.
type HunkRange struct{ First, Last int }

// ParseHunks reads "3" or "2-5". The error wraps superqode.ErrUsage.
func ParseHunks(s string) (HunkRange, error) {
	a, b, many := strings.Cut(s, "-")
	if !many {
		b = a
	}
	first, err1 := strconv.ParseUint(a, 10, 31)
	last, err2 := strconv.ParseUint(b, 10, 31)
	if err1 != nil || err2 != nil || first == 0 || last < first {
		return HunkRange{}, superqode.Errorf(superqode.ErrUsage,
			"%q is not a hunk: give a number, or a range such as 2-5", s)
	}
	return HunkRange{int(first), int(last)}, nil
}

// HunkReader follows a patch line by line. It counts the lines of each hunk, so
// that it takes no line of a file for a part of the patch.
type HunkReader struct{ old, new int }

// patchLine is what one line of a patch is.
type patchLine uint8

const (
	lineHeader patchLine = iota // between the hunks
	LineFile                    // "diff --git …": a file begins
	LineHunk                    // "@@ -…": a hunk begins
	lineBinary                  // "GIT binary patch"
	LineBody                    // in a hunk
)

// Next classifies a line, given without its newline.
func (r *HunkReader) Next(line []byte) patchLine {
	if r.old > 0 || r.new > 0 {
		switch {
		case len(line) == 0 || line[0] == ' ':
			r.old--
			r.new--
		case line[0] == '-':
			r.old--
		case line[0] == '+':
			r.new--
		}
		return LineBody
	}
	switch {
	case bytes.HasPrefix(line, []byte(`\ `)):
		return LineBody
	case bytes.HasPrefix(line, []byte("diff --git ")):
		return LineFile
	case bytes.Equal(line, []byte("GIT binary patch")):
		return lineBinary
	}
	if h, ok := parseHunk(line); ok {
		r.old, r.new = h.OldLines, h.NewLines
		return LineHunk
	}
	return lineHeader
}

// parseHunk reads "@@ -a,b +c,d @@"; a number of lines that is not there is 1.
func parseHunk(line []byte) (h Hunk, ok bool) {
	f := strings.SplitN(string(line), " ", 4)
	if len(f) < 4 || f[0] != "@@" || !strings.HasPrefix(f[3], "@@") {
		return h, false
	}
	old, ok1 := strings.CutPrefix(f[1], "-")
	fresh, ok2 := strings.CutPrefix(f[2], "+")
	h.OldStart, h.OldLines = parseSpan(old)
	h.NewStart, h.NewLines = parseSpan(fresh)
	return h, ok1 && ok2
}

func parseSpan(s string) (start, n int) {
	first, count, given := strings.Cut(s, ",")
	if !given {
		count = "1"
	}
	return parseNumber(first), parseNumber(count)
}

// parseNumber returns 0 for what git does not write.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// lineSplitter gathers lines from pieces of any size.
type lineSplitter []byte

// split calls each with every line that is complete by now, without its newline.
func (l *lineSplitter) split(b []byte, each func(line []byte)) {
	for {
		part, rest, whole := bytes.Cut(b, []byte("\n"))
		*l = append(*l, part...)
		if !whole {
			return
		}
		each(*l)
		*l, b = (*l)[:0], rest
	}
}

// numberWriter passes a patch on with each hunk's number behind its second "@@",
// or on a line of its own for a file without hunks.
type numberWriter struct {
	w       *bufio.Writer
	reader  HunkReader
	line    lineSplitter
	n       int
	pending bool // inside a file's header that has no number yet
}

// NewNumberWriter passes everything on to w; Close writes the rest.
func NewNumberWriter(w io.Writer) *numberWriter { return &numberWriter{w: bufio.NewWriter(w)} }

// Write takes pieces of any size and passes on whole lines.
func (n *numberWriter) Write(b []byte) (int, error) {
	n.line.split(b, n.writeLine)
	return len(b), nil
}

func (n *numberWriter) writeLine(line []byte) {
	kind := n.reader.Next(line)
	switch kind {
	case LineFile, lineBinary:
		n.whole()
		n.pending = kind == LineFile
	case LineHunk:
		n.n++
		n.pending = false
		at := bytes.Index(line[2:], []byte("@@")) + 4
		line = slices.Concat(line[:at], fmt.Appendf(nil, " [%d]", n.n), line[at:])
	}
	_, _ = n.w.Write(line)
	_ = n.w.WriteByte('\n') // Close reports the error of a write
}

// whole gives a number to a file that has no hunks.
func (n *numberWriter) whole() {
	if n.pending {
		n.n++
		fmt.Fprintf(n.w, "[%d] the whole change\n", n.n)
		n.pending = false
	}
}

// Close writes what is left.
func (n *numberWriter) Close() error {
	if len(n.line) > 0 {
		n.writeLine(n.line)
	}
	n.whole()
	return n.w.Flush()
}

// section is one file of a patch: its hunks as they are there, none for a file
// without text.
type section struct {
	header string // its first line
	hunks  [][]byte
}

// isOf reports whether the section can belong to a change. It accepts names
// that git quotes.
func (s *section) isOf(c *Change) bool {
	if strings.Contains(s.header, `"`) {
		return true
	}
	from, to := c.Path(), c.Path()
	if c.Renamed() {
		from = c.Old.Path
	}
	return superqode.RelPath(s.header) == "diff --git a/"+from+" b/"+to
}

// count is how many numbers the section takes.
func (s *section) count() int { return max(len(s.hunks), 1) }

// splitPatch cuts a patch into its files and their hunks.
func splitPatch(patch []byte) ([]section, error) {
	var files []section
	var reader HunkReader
	for line := range bytes.Lines(patch) {
		bare := bytes.TrimSuffix(line, []byte("\n"))
		kind := reader.Next(bare)
		if kind == LineFile {
			files = append(files, section{header: string(bare)})
		}
		if len(files) == 0 {
			return nil, errors.New("the patch does not begin with a file")
		}
		f := &files[len(files)-1]
		switch {
		case kind == LineHunk:
			f.hunks = append(f.hunks, bytes.Clone(line))
		case kind == LineBody && len(f.hunks) > 0:
			last := len(f.hunks) - 1
			f.hunks[last] = append(f.hunks[last], line...)
		}
	}
	return files, nil
}

// selection says which hunks of a patch were chosen.
type selection map[int]bool

// selectHunks checks ranges against the number of hunks.
func selectHunks(ranges []HunkRange, total int) (selection, error) {
	sel := selection{}
	for _, r := range ranges {
		if r.Last > total {
			return nil, superqode.Errorf(superqode.ErrUsage, "there is no hunk %d: the diff has %s", r.Last,
				text.Plural(total, "hunk"))
		}
		for n := r.First; n <= r.Last; n++ {
			sel[n] = true
		}
	}
	return sel, nil
}

// chosen returns the positions of a section's hunks that are selected; first is
// the number of its first one.
func (sel selection) chosen(s *section, first int) []int {
	var list []int
	for i := range s.count() {
		if sel[first+i] {
			list = append(list, i)
		}
	}
	return list
}

// patchFile writes base with some of a section's hunks to w and returns the lines
// that they add and remove.
func patchFile(w io.Writer, base *os.File, s *section, which []int) (added, removed int, err error) {
	var patch bytes.Buffer
	patch.WriteString("--- a/file\n+++ b/file\n")
	for _, i := range which {
		patch.Write(s.hunks[i])
	}
	files, _, err := gitdiff.Parse(&patch)
	if err != nil {
		return 0, 0, fmt.Errorf("read hunks: %w", err)
	}
	if len(files) != 1 || len(files[0].TextFragments) != len(which) {
		return 0, 0, errors.New("read hunks: they belong to several files")
	}
	for _, f := range files[0].TextFragments {
		added, removed = added+int(f.LinesAdded), removed+int(f.LinesDeleted)
	}
	out := bufio.NewWriter(w)
	if err := gitdiff.Apply(out, base, files[0]); err != nil {
		return 0, 0, fmt.Errorf("apply hunks: %w", err)
	}
	return added, removed, out.Flush()
}

// LineRange is a range of lines, counted from 1, both ends included. A place
// between two lines is the range after the first of them: End is Start-1.
type LineRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Hunk is one place where two versions of a file differ, without context.
type Hunk struct{ OldStart, OldLines, NewStart, NewLines int }

// Old is the hunk's lines in the old version.
func (h Hunk) Old() LineRange {
	if h.OldLines == 0 { // diff names the line before
		return LineRange{h.OldStart + 1, h.OldStart}
	}
	return LineRange{h.OldStart, h.OldStart + h.OldLines - 1}
}

// New is the hunk's lines in the new version.
func (h Hunk) New() LineRange { return Hunk{OldStart: h.NewStart, OldLines: h.NewLines}.Old() }

// Touches reports whether two hunks of the same old version meet, as in git's
// merge: hunks one line apart do not.
func (h Hunk) Touches(o Hunk) bool {
	a, b := h.Old(), o.Old()
	return a.Start <= b.End+1 && b.Start <= a.End+1
}

// overlaps returns the lines of a file that two sides changed.
func overlaps(a, b []Hunk) []LineRange {
	var list []LineRange
	for _, h := range a {
		for _, o := range b {
			if !h.Touches(o) {
				continue
			}
			x, y := h.Old(), o.Old()
			r := LineRange{min(x.Start, y.Start), max(x.End, y.End)}
			if n := len(list); n > 0 && r.Start <= list[n-1].End+1 {
				list[n-1] = LineRange{min(list[n-1].Start, r.Start), max(list[n-1].End, r.End)}
			} else {
				list = append(list, r)
			}
		}
	}
	return list
}

// HunkCollector collects the hunks of a patch without context that is written
// to it, by file.
type HunkCollector struct {
	reader HunkReader
	line   lineSplitter
	Files  [][]Hunk
}

// Write takes pieces of any size.
func (c *HunkCollector) Write(b []byte) (int, error) {
	c.line.split(b, func(line []byte) {
		switch c.reader.Next(line) {
		case LineFile:
			c.Files = append(c.Files, nil)
		case LineHunk:
			if n := len(c.Files); n > 0 {
				h, _ := parseHunk(line)
				c.Files[n-1] = append(c.Files[n-1], h)
			}
		}
	})
	return len(b), nil
}

// hunks are those of the only file.
func (c *HunkCollector) hunks() []Hunk {
	if len(c.Files) == 0 {
		return nil
	}
	return c.Files[0]
}

// OnlyHunks reduces the changes to the chosen hunks. The changes are in the
// order of the patch; it drops those that the patch does not show.
func (b *Scratch) OnlyHunks(ctx context.Context, e *Ends, paths []string, ranges []HunkRange) ([]Change, error) {
	if e.Base == "" {
		_, err := selectHunks(ranges, 0)
		return nil, errors.Join(err, context.Cause(ctx))
	}
	do := store.DiffOptions{Base: e.Base, Final: e.Final, Paths: paths}
	var patch bytes.Buffer
	if err := b.store.Diff(ctx, do, &patch); err != nil {
		return nil, err
	}
	files, err := splitPatch(patch.Bytes())
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range files {
		total += files[i].count()
	}
	sel, err := selectHunks(ranges, total)
	if err != nil {
		return nil, err
	}
	shown := *e
	shown.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(c superqode.Change) bool {
		return c.Type == superqode.ChangeMode && (c.OldMode^c.NewMode)&0o100 == 0
	})
	list, err := shown.Pairs(ctx, b.store, paths)
	if err != nil {
		return nil, err
	}
	e.Left = nil // what has no number was not chosen
	return b.chooseHunks(ctx, list, files, sel)
}

var ErrNotThePatch = errors.New("the patch and the list of its files do not match")

// chooseHunks goes through the patch's files and the changes side by side. A path
// that turned from file to link, or back, is two files of a patch.
func (b *Scratch) chooseHunks(ctx context.Context, list []Change, files []section, sel selection) ([]Change, error) {
	var out []Change
	number := 1
	take := func(c *Change) (*section, []int, error) {
		if len(files) == 0 || !files[0].isOf(c) {
			return nil, nil, ErrNotThePatch
		}
		f := &files[0]
		chosen := sel.chosen(f, number)
		number += f.count()
		files = files[1:]
		return f, chosen, nil
	}
	for _, c := range list {
		f, chosen, err := take(&c)
		if err != nil {
			return nil, err
		}
		if c.Old != nil && c.New != nil && c.Old.Kind != c.New.Kind {
			_, made, err := take(&c)
			if err != nil {
				return nil, err
			}
			switch {
			case len(made) > 0:
				out = append(out, c)
			case len(chosen) > 0:
				c.New = nil
				out = append(out, c)
			}
			continue
		}
		if len(chosen) == 0 {
			continue
		}
		if len(chosen) < f.count() {
			if err := b.partly(ctx, &c, f, chosen); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	if len(files) > 0 {
		return nil, ErrNotThePatch
	}
	return out, nil
}

// partly makes a change of some of its hunks. Any of them brings the name and
// the mode along.
func (b *Scratch) partly(ctx context.Context, c *Change, f *section, chosen []int) error {
	if c.Old == nil || c.New == nil || c.Old.Kind != snapshot.File {
		return ErrNotThePatch // a file that is made or deleted, or a link, has one hunk
	}
	if err := b.Fetch("base", c.Old.ID); err != nil {
		return err
	}
	base, err := os.Open(b.Path("base"))
	if err != nil {
		return err
	}
	defer base.Close()
	name := b.Fresh("hunks-")
	err = b.create(name, func(w io.Writer) (err error) {
		c.Added, c.Removed, err = patchFile(w, base, f, chosen)
		return err
	})
	if err != nil {
		return err
	}
	made, err := b.result(name)
	if err != nil {
		return err
	}
	part := *c.New
	part.ID, part.Size = made.ID, made.Size
	c.New = &part
	return ctx.Err()
}
