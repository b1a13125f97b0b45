package attribution

import (
	"bytes"
	"context"
	"os"
	"slices"
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
	f.advance(text, hunks, f.covers(e, content))
	return nil
}

// cover is what one statement says about a version of a file.
type cover struct {
	by    foldBy
	whole bool              // all that is new is by's
	lines []merge.LineRange // otherwise these lines
}

func (c *cover) has(line int) bool {
	return slices.ContainsFunc(c.lines, func(r merge.LineRange) bool { return line >= r.Start && line <= r.End })
}

// advance brings the file to its next version, given where the two differ. The
// lines that stay keep their author.
func (f *fold) advance(text [][]byte, hunks []merge.Hunk, c cover) {
	out := make([]foldLine, 0, len(text))
	at := 0
	for _, h := range hunks {
		old, fresh := h.Old(), h.New()
		out = append(out, f.lines[at:old.Start-1]...)
		owned := c.whole || h.NewLines == 0 && c.has(fresh.Start) && c.has(fresh.Start-1)
		for line := fresh.Start; line <= fresh.End; line++ {
			l := foldLine{}
			if c.whole || c.has(line) {
				l.foldBy, owned = c.by, true
			}
			out = append(out, l)
		}
		for _, l := range f.lines[old.Start-1 : old.End] {
			if l.base > 0 {
				f.gone[l.base] = foldBy{}
				if owned {
					f.gone[l.base] = c.by
				}
			}
		}
		at = old.End
	}
	out = append(out, f.lines[at:]...)
	for i := range out { // said late: the line came with an earlier version, and nobody had said whose it is
		if out[i].base == 0 && out[i].agent.IsZero() && c.has(i+1) {
			out[i].foldBy = c.by
		}
	}
	f.lines, f.text = out, text
}

// covers says which lines of the file a statement is about. Of an edit it is the
// text that it put in; where the file is exactly what the edit makes of the
// version before, all that is new is the edit's.
func (f *fold) covers(e *trackEvent, content []byte) cover {
	if e == nil {
		return cover{}
	}
	c := cover{by: foldBy{e.Agent, e.At}, lines: e.Lines}
	if len(e.Lines) > 0 {
		return c
	}
	edited := bytes.Join(f.text, nil)
	for _, ed := range e.Edits {
		if ed.Old == "" {
			edited = []byte(ed.New)
		} else {
			edited = bytes.Replace(edited, []byte(ed.Old), []byte(ed.New), 1)
		}
	}
	if c.whole = len(e.Edits) == 0 || bytes.Equal(edited, content); !c.whole {
		for _, ed := range e.Edits {
			c.lines = append(c.lines, occurrences(content, ed.New)...)
		}
	}
	return c
}

// blamed returns the lines as Blame does.
func (f *fold) blamed() []BlamedLine {
	out := make([]BlamedLine, len(f.lines))
	for i, l := range f.lines {
		b := BlamedLine{Author: AuthorBase, BaseLine: l.base, Text: bytes.TrimSuffix(f.text[i], []byte("\n"))}
		if l.base == 0 {
			b.Author, b.Agent, b.FirstSeen = AuthorAgent, l.agent, l.at
			if l.agent.IsZero() {
				b.Author = AuthorUnknown
			}
		}
		out[i] = b
	}
	return out
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
		list = append(list, merge.LineRange{Start: first,
			End: first + bytes.Count([]byte(text[:len(text)-1]), []byte("\n"))})
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
	h := merge.Hunk{OldStart: head + 1, OldLines: len(old) - tail - head, NewStart: head + 1,
		NewLines: len(next) - tail - head}
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
	for name, text := range map[string][][]byte{"fold-old": old, "fold-new": next} {
		if err := os.WriteFile(f.b.Path(name), bytes.Join(text, nil), 0o600); err != nil {
			return nil, err
		}
	}
	return f.b.Hunks(ctx, "fold-old", "fold-new")
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
	fresh := h.New()
	for _, l := range f.lines[fresh.Start-1 : fresh.End] {
		add(l.foldBy)
	}
	for n := range h.OldLines {
		if by, deleted := f.gone[h.OldStart+n]; deleted {
			add(by)
		}
	}
	return list, known
}
