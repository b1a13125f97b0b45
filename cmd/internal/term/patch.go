package term

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/seed-2d964004/superqode/internal/text"
)

// PatchWriter shows a patch on a terminal: it escapes what the terminal would
// obey and, when asked to, adds git's colours. It knows the line counts of each
// hunk, so a removed line "-- x" is not taken for a file header.
type PatchWriter struct {
	W        io.Writer
	Color    bool
	line     []byte
	old, new int // lines of the hunk that are still to come
}

// Write takes any pieces; lines are passed on whole.
func (p *PatchWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			p.line = append(p.line, rest...)
			break
		}
		p.line = append(p.line, rest[:i]...)
		if err := p.flushLine(); err != nil {
			return 0, err
		}
		rest = rest[i+1:]
	}
	return len(b), nil
}

// Close writes a last line that had no newline.
func (p *PatchWriter) Close() error {
	if len(p.line) == 0 {
		return nil
	}
	return p.flushLine()
}

// ShowText copies a text to a terminal, made safe and, where it is a patch, with
// git's colours.
func (t *Terminal) ShowText(r io.Reader, patch bool) error {
	w := bufio.NewWriter(t.Out)
	p := &PatchWriter{W: w, Color: patch}
	if _, err := io.Copy(p, r); err != nil {
		return err
	}
	return errors.Join(p.Close(), w.Flush())
}

func (p *PatchWriter) flushLine() error {
	color := p.classify()
	text := text.PrintableLines(string(p.line)) // a carriage return at the end is shown, as git shows it
	p.line = p.line[:0]
	_, err := io.WriteString(p.W, paint(p.Color && color != "" && text != "", text, color)+"\n")
	return err
}

// classify returns the colour of the current line and keeps count of the hunk.
func (p *PatchWriter) classify() string {
	first := byte(' ')
	if len(p.line) > 0 {
		first = p.line[0]
	}
	if p.old > 0 || p.new > 0 {
		switch first {
		case '+':
			p.new--
			return Green
		case '-':
			p.old--
			return Red
		case '\\':
			return ""
		}
		p.old--
		p.new--
		return ""
	}
	if old, new, ok := hunkCounts(p.line); ok {
		p.old, p.new = old, new
		return Cyan
	}
	for _, head := range []string{
		"diff --git ", "index ", "--- ", "+++ ", "old mode ", "new mode ", "deleted file ", "new file ",
		"similarity ", "dissimilarity ", "rename ", "copy ",
	} {
		if bytes.HasPrefix(p.line, []byte(head)) {
			return Bold
		}
	}
	return ""
}

// hunkCounts reads the two line counts of "@@ -a,b +c,d @@".
func hunkCounts(line []byte) (old, new int, ok bool) {
	f := bytes.SplitN(line, []byte{' '}, 4)
	if len(f) < 4 || string(f[0]) != "@@" || !bytes.HasPrefix(f[1], []byte{'-'}) || !bytes.HasPrefix(f[2], []byte{'+'}) {
		return 0, 0, false
	}
	return rangeCount(f[1]), rangeCount(f[2]), true
}

func rangeCount(r []byte) int {
	_, count, found := bytes.Cut(r, []byte{','})
	if !found {
		return 1
	}
	n, err := strconv.Atoi(string(count))
	if err != nil {
		return 0
	}
	return n
}
