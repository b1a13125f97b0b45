// Package text turns names, commands, numbers and times into text that is safe and easy to read.
//
// Everything that a session's program chose is data: a file name may hold terminal escape sequences,
// direction overrides or a line break. What superqode prints, reports or offers for pasting passes
// through one of four functions: [Printable] for one line of text, [PrintableLines] for a program's
// output, [QuotePath] for a path that a script may read, [Quote] for a word of a shell command. Each
// of them leaves ordinary text as it is.
package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Printable returns s on one line. What a terminal could obey and what nobody can see is written as Go
// writes it: \n, \x1b, \u202e, and \xff for a byte that is not UTF-8. Escaping twice changes nothing.
func Printable[S ~string](s S) string { return escape(string(s), "") }

// PrintableLines is Printable for a text of several lines: line feeds and tabs stay, and so does a
// line's end in "\r\n", as "\n".
func PrintableLines(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// Printables returns the parts of s in order: each is text that can be shown as it is or, where
// escaped is true, one escape sequence. Characters in keep are never escaped.
func Printables(s, keep string) iter.Seq2[string, bool] {
	return func(yield func(part string, escaped bool) bool) {
		for len(s) > 0 {
			plain := 0
			for plain < len(s) {
				if c := s[plain]; c >= ' ' && c < 0x7f {
					plain++
					continue
				}
				r, n := utf8.DecodeRuneInString(s[plain:])
				if !harmless(r, n) && !strings.ContainsRune(keep, r) {
					break
				}
				plain += n
			}
			if plain > 0 && !yield(s[:plain], false) {
				return
			}
			if s = s[plain:]; s == "" {
				return
			}
			r, n := utf8.DecodeRuneInString(s)
			part := strconv.QuoteRune(r)
			part = part[1 : len(part)-1]
			if r == utf8.RuneError && n == 1 {
				part = fmt.Sprintf(`\x%02x`, s[0])
			}
			if !yield(part, true) {
				return
			}
			s = s[n:]
		}
	}
}

func escape(s, keep string) string {
	var b strings.Builder
	for part, escaped := range Printables(s, keep) {
		if !escaped && len(part) == len(s) {
			return s
		}
		b.WriteString(part)
	}
	return b.String()
}

// harmless reports whether a rune of n bytes is shown as something that can be seen. The joiners of
// Persian words and of emoji are part of what is shown.
func harmless(r rune, n int) bool {
	if r == utf8.RuneError {
		return n > 1
	}
	return strconv.IsGraphic(r) || r == '\u200c' || r == '\u200d'
}

// QuotePath returns a path as git prints it with core.quotePath=false: as it is or, when it holds
// anything that could be misread, in double quotes with C's escapes.
func QuotePath(p string) string {
	if Printable(p) == p && !strings.ContainsAny(p, `"\`) {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for p != "" {
		r, n := utf8.DecodeRuneInString(p)
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case harmless(r, n):
			b.WriteString(p[:n])
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteString(Printable(p[:n]))
		default:
			for i := range n {
				fmt.Fprintf(&b, `\%03o`, p[i])
			}
		}
		p = p[n:]
	}
	b.WriteByte('"')
	return b.String()
}

// Quote returns s as one word of a line for bash: as it is, in single quotes or, when it holds what
// cannot be printed, as $'…'. The result is printable. A NUL byte, which no word can hold, is shown
// escaped.
func Quote(s string) string {
	if Printable(s) != s {
		if q, err := syntax.Quote(s, syntax.LangBash); err == nil {
			return q
		}
		s = Printable(s)
	}
	return QuotePOSIX(s)
}

// QuoteLine quotes each of the words of a command.
func QuoteLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// QuotePOSIX returns s as one word of a line for any POSIX shell, byte for byte: as it is or in single quotes.
func QuotePOSIX(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("-_./+:,@%=", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return QuoteSingle(s)
}

// QuoteSingle returns s in single quotes, byte for byte, for a program that reads it: any POSIX shell,
// or git (sq_dequote of its quote.c).
func QuoteSingle(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// QuotePattern returns a pattern that matches s alone, for filepath.Match, doublestar and git's wildmatch.
func QuotePattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(s)
}

// Clip cuts s to at most n bytes, at a character, and marks the cut with "…".
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// JSONError says in JSON's words what is wrong with a value that was decoded.
func JSONError(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "is a " + t.Value + ", not a " + t.Type.String()
	}
	return err.Error()
}

// Plural is a number with what it counts: "1 file", "2 files".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Size is a number of bytes with at most one decimal and a binary unit: "512 B", "1.5 KiB", "4 MiB".
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + units[i]
}

// Age is a duration as a whole number with one unit, of seconds to days: "5m", "3d".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Took is how long something took, with the precision that people read: "12ms", "3.21s", "4m7s".
func Took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Seconds is a duration as JSON results give it: in seconds, to the millisecond.
func Seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// FirstOf names the first of a list of differences, and how many more there are.
func FirstOf(list []string) string {
	if len(list) > 3 {
		return fmt.Sprintf("%s; %s; %s and %d more", list[0], list[1], list[2], len(list)-3)
	}
	out := ""
	for i, l := range list {
		if i > 0 {
			out += "; "
		}
		out += l
	}
	return out
}
