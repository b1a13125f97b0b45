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

func paint(on bool, s, color string) string {
	if !on {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

func (a *app) paintOut(s, color string) string { return paint(a.outColor, s, color) }
func (a *app) paintErr(s, color string) string { return paint(a.errColor, s, color) }

// note prints a line for people on stderr; -q silences it.
func (a *app) note(format string, args ...any) {
	if !a.flags.Quiet {
		a.progress.clear()
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// warn shows one line about something that did not stop the command.
func (a *app) warn(line string) {
	a.note("%s %s", a.paintErr("superqode: warning:", yellow), text.Printable(line))
}

// printJSON prints one document, one line of it, on stdout.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) terminalWidth() int {
	if f, ok := a.Out.(*os.File); ok {
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
