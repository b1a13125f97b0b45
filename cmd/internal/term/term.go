// Package term prints for people: colours, notes and warnings, tables that fit the terminal, patches,
// and a line of progress.
package term

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/seed-2d964004/superqode/internal/text"
)

// Padded fills s with blanks up to width bytes.
func Padded(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len(s))) }

// IsTerminal reports whether a stream is a file that is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// The colours that superqode prints with.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Bold   = "1"
)

// Terminal is where a command prints: results on Out, all else on Err.
type Terminal struct {
	Out, Err           io.Writer
	OutTTY, ErrTTY     bool // whether the streams are terminals
	OutColor, ErrColor bool
	Quiet              bool      // -q: no notes
	Progress           *Progress // nil where nobody looks
}

func paint(on bool, s, color string) string {
	if !on {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// PaintOut colours s for Out, where that is wanted.
func (t *Terminal) PaintOut(s, color string) string { return paint(t.OutColor, s, color) }

// PaintErr colours s for Err, where that is wanted.
func (t *Terminal) PaintErr(s, color string) string { return paint(t.ErrColor, s, color) }

// Note prints a line for people on stderr; -q silences it.
func (t *Terminal) Note(format string, args ...any) {
	if !t.Quiet {
		t.Progress.clear()
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// Warn shows one line about something that did not stop the command.
func (t *Terminal) Warn(line string) {
	t.Note("%s %s", t.PaintErr("superqode: warning:", Yellow), text.Printable(line))
}

// Line prints a line of the result on Out.
func (t *Terminal) Line(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

// Path is a path for Out: quoted on a terminal, exact for a program.
func (t *Terminal) Path(path string) string {
	if t.OutTTY {
		return text.QuotePath(path)
	}
	return path
}

// PrintLine prints v as a line of JSON on Out.
func (t *Terminal) PrintLine(v any) error { return WriteJSON(t.Out, v) }

// WriteJSON writes v as a line of JSON, with <, > and & as they are.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// TerminalWidth is how many columns Out has; 80 if that is not known.
func (t *Terminal) TerminalWidth() int {
	if f, ok := t.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// PipeWriter remembers the first error of a stream. A git that writes into it
// dies when the stream's reader goes away, and would be blamed.
type PipeWriter struct {
	W   io.Writer
	err error
}

// Write passes b on.
func (p *PipeWriter) Write(b []byte) (int, error) {
	n, err := p.W.Write(b)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n, err
}

// Cause returns the stream's own error where there was one, else err.
func (p *PipeWriter) Cause(err error) error {
	if p.err != nil {
		return p.err
	}
	return err
}
