package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
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
	a.note("%s %s", a.paintErr("superqode: warning:", yellow), printable(line))
}

// printJSON prints one document, one line of it, on stdout.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable escapes what could move the cursor, change colours or reorder text
// on a terminal: C0 and C1 controls, DEL, bidirectional overrides and bytes that
// are not UTF-8. Everything else stays as it is, so the result reads the same.
func printable(s string) string {
	clean := utf8.ValidString(s) && !strings.ContainsFunc(s, unsafeRune)
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\\%03o", s[i])
		} else if unsafeRune(r) {
			escapeRune(&b, r, s[i:i+n])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unsafeRune reports whether a terminal might obey the rune instead of showing it.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func escapeRune(b *strings.Builder, r rune, raw string) {
	switch r {
	case '\n':
		b.WriteString(`\n`)
	case '\t':
		b.WriteString(`\t`)
	case '\r':
		b.WriteString(`\r`)
	default:
		for i := range len(raw) {
			fmt.Fprintf(b, "\\%03o", raw[i])
		}
	}
}

// quotePath prints a path as git does with core.quotePath=false: as it is, or in
// double quotes with C escapes when it holds anything that would be misread.
func quotePath(p string) string {
	esc := printable(p)
	if esc == p && !strings.ContainsAny(p, `"\`) {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(p); {
		_, n := utf8.DecodeRuneInString(p[i:])
		switch p[i] {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(p[i])
		default:
			b.WriteString(printable(p[i : i+n]))
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
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
