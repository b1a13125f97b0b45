package attribution

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
)

// fold follows the lines of one file of a shared workspace from the base through
// every statement about it to what it holds now. A new line belongs to the agent
// whose statement covers it; one that no statement covers belongs to nobody.
type fold struct {
	b     *merge.Scratch
	lines []foldLine
	text  [][]byte
	gone  map[int]foldBy // lines of the base that were deleted
	n     int            // versions written to the scratch folder
}

type foldLine struct {
	base int // the line's number in the base, 0 for a new one
	foldBy
}

// foldBy is who did something, and when that was known; zero: not known.
type foldBy struct {
	agent superqode.AgentID
	at    time.Time
}

func newFold(b *merge.Scratch, base []byte) *fold {
	f := &fold{b: b, text: splitLines(base), gone: map[int]foldBy{}}
	f.lines = make([]foldLine, len(f.text))
	for i := range f.lines {
		f.lines[i].base = i + 1
	}
	return f
}

// splitLines cuts a text into its lines, newlines included.
func splitLines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// step brings the file to what it held at a statement; nil is for what came after
// the last one.
func (f *fold) step(ctx context.Context, content []byte, e *trackEvent) error {
	text := splitLines(content)
	hunks, err := f.diff(ctx, text)
	if err != nil {
		return err
	}
	var by foldBy
	mine := func(int) bool { return false }
	whole := false
	if e != nil {
		by = foldBy{e.Agent, e.At}
		mine, whole = f.covers(e, content, text)
	}
	out := make([]foldLine, 0, len(text))
	at := 0
	for _, h := range hunks {
		r := h.Old()
		for ; at < min(r.Start-1, len(f.lines)); at++ {
			out = append(out, f.lines[at])
		}
		first := h.NewStart
		if h.NewLines == 0 {
			first++
		}
		owned := whole
		for n := range h.NewLines {
			l := foldLine{}
			if whole || mine(first+n) {
				l.foldBy, owned = by, true
			}
			out = append(out, l)
		}
		if h.NewLines == 0 && mine(first) && mine(first-1) {
			owned = true
		}
		for ; at < min(r.End, len(f.lines)); at++ {
			if old := f.lines[at]; old.base > 0 {
				f.gone[old.base] = foldBy{}
				if owned {
					f.gone[old.base] = by
				}
			}
		}
	}
	out = append(out, f.lines[min(at, len(f.lines)):]...)
	for i := range out { // said late: the line came with an earlier version, and nobody had said whose it is
		if e != nil && !whole && out[i].base == 0 && out[i].agent.IsZero() && mine(i+1) {
			out[i].foldBy = by
		}
	}
	f.lines, f.text = out, text
	return nil
}

// covers says which lines of the file a statement is about. Of an edit it is the
// text that it put in; where the file is exactly what the edit makes of the
// version before, all that is new is the edit's.
func (f *fold) covers(e *trackEvent, content []byte, text [][]byte) (mine func(line int) bool, whole bool) {
	none := func(int) bool { return false }
	switch {
	case len(e.Lines) > 0:
		return func(line int) bool {
			return slices.ContainsFunc(e.Lines, func(r merge.LineRange) bool { return line >= r.Start && line <= r.End })
		}, false
	case len(e.Edits) == 0:
		return none, true
	}
	before := bytes.Join(f.text, nil)
	for _, ed := range e.Edits {
		once := bytes.Replace(before, []byte(ed.Old), []byte(ed.New), 1)
		if ed.Old == "" {
			once = []byte(ed.New)
		}
		before = once
	}
	if bytes.Equal(before, content) {
		return none, true
	}
	var ranges []merge.LineRange
	for _, ed := range e.Edits {
		ranges = append(ranges, occurrences(content, ed.New)...)
	}
	return func(line int) bool {
		return slices.ContainsFunc(ranges, func(r merge.LineRange) bool { return line >= r.Start && line <= r.End })
	}, false
}

// occurrences returns the lines in which a text stands.
func occurrences(content []byte, text string) []merge.LineRange {
	if text == "" {
		return nil
	}
	var list []merge.LineRange
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte(text))
		if i < 0 {
			return list
		}
		start := at + i
		first := 1 + bytes.Count(content[:start], []byte("\n"))
		list = append(list, merge.LineRange{Start: first, End: first + bytes.Count([]byte(text[:len(text)-1]), []byte("\n"))})
		at = start + len(text)
	}
}

// diff compares the version that the fold has with the next one.
func (f *fold) diff(ctx context.Context, next [][]byte) ([]merge.Hunk, error) {
	old := f.text
	head := 0
	for head < min(len(old), len(next)) && bytes.Equal(old[head], next[head]) {
		head++
	}
	tail := 0
	for tail < min(len(old), len(next))-head && bytes.Equal(old[len(old)-1-tail], next[len(next)-1-tail]) {
		tail++
	}
	h := merge.Hunk{OldStart: head + 1, OldLines: len(old) - tail - head, NewStart: head + 1, NewLines: len(next) - tail - head}
	if h.OldLines == 0 {
		h.OldStart--
	}
	if h.NewLines == 0 {
		h.NewStart--
	}
	switch {
	case h.OldLines == 0 && h.NewLines == 0:
		return nil, nil
	case h.OldLines == 0, h.NewLines == 0, h.OldLines == 1 && h.NewLines == 1:
		return []merge.Hunk{h}, nil
	}
	f.n++
	a, b := "fold-a-"+strconv.Itoa(f.n), "fold-b-"+strconv.Itoa(f.n)
	for name, text := range map[string][][]byte{a: old, b: next} {
		if err := os.WriteFile(f.b.Path(name), bytes.Join(text, nil), 0o600); err != nil {
			return nil, err
		}
	}
	hunks, err := f.b.Hunks(ctx, a, b)
	if err != nil {
		return nil, err
	}
	if err := f.b.Drop(a); err != nil {
		return nil, err
	}
	return hunks, f.b.Drop(b)
}

// owners returns who made a hunk of the difference between the base and now: of
// its new lines and of those of the base that it takes away. known is false when
// nobody said so of one of them.
func (f *fold) owners(h merge.Hunk) (list []foldBy, known bool) {
	known = true
	add := func(by foldBy) {
		if by.agent.IsZero() {
			known = false
			return
		}
		if !slices.ContainsFunc(list, func(o foldBy) bool { return o.agent == by.agent }) {
			list = append(list, by)
		}
	}
	for n := range h.NewLines {
		if i := h.NewStart - 1 + n; i >= 0 && i < len(f.lines) {
			add(f.lines[i].foldBy)
		}
	}
	for n := range h.OldLines {
		by, deleted := f.gone[h.OldStart+n]
		if deleted {
			add(by)
		}
	}
	return list, known
}
