package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/seed-2d964004/superqode/internal/text"
)

// The colours that superqode prints with.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	bold   = "1"
)

// terminal is where a command prints: results on Out, all else on Err.
type terminal struct {
	Out, Err           io.Writer
	outTTY, errTTY     bool // whether the streams are terminals
	outColor, errColor bool
	quiet              bool      // -q: no notes
	progress           *progress // nil where nobody looks
}

func paint(on bool, s, color string) string {
	if !on {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

func (t *terminal) paintOut(s, color string) string { return paint(t.outColor, s, color) }
func (t *terminal) paintErr(s, color string) string { return paint(t.errColor, s, color) }

// note prints a line for people on stderr; -q silences it.
func (t *terminal) note(format string, args ...any) {
	if !t.quiet {
		t.progress.clear()
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// warn shows one line about something that did not stop the command.
func (t *terminal) warn(line string) {
	t.note("%s %s", t.paintErr("superqode: warning:", yellow), text.Printable(line))
}

// printJSON prints one document, one line of it, on stdout.
func (t *terminal) printJSON(v any) error {
	enc := json.NewEncoder(t.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (t *terminal) terminalWidth() int {
	if f, ok := t.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// pipeWriter remembers the first error of a stream. A git that writes into it
// dies when the stream's reader goes away, and would be blamed.
type pipeWriter struct {
	w   io.Writer
	err error
}

// Write passes b on.
func (p *pipeWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n, err
}

// cause returns the stream's own error where there was one, else err.
func (p *pipeWriter) cause(err error) error {
	if p.err != nil {
		return p.err
	}
	return err
}
