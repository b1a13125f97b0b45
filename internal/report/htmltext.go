package report

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

// writeText writes s as text of an HTML element. What can not be seen, or would
// reorder what stands around it, is written as an escape sequence in an element of
// its own, so that it can be told from the same letters in a file: control
// characters, direction overrides, U+2028, bytes that are not UTF-8. Tabs stay, and
// so do newlines, which only texts of several lines have.
func writeText(b *bytes.Buffer, s string) {
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f || c == '\t' || c == '\n' {
			if esc := entity(c); esc != "" {
				b.WriteString(s[plain:i])
				b.WriteString(esc)
				plain = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		b.WriteString(s[plain:i])
		b.WriteString("<b class=x>")
		b.WriteString(escapeRune(r, n, c))
		b.WriteString("</b>")
		i += n
		plain = i
	}
	b.WriteString(s[plain:])
}

func entity(c byte) string {
	switch c {
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '&':
		return "&amp;"
	case '"':
		return "&#34;"
	case '\'':
		return "&#39;"
	}
	return ""
}

// escapeRune writes a rune as Go does: \r, \x1b, \u202e, and \xff for a byte that
// is not UTF-8.
func escapeRune(r rune, n int, first byte) string {
	if r == utf8.RuneError && n == 1 {
		return fmt.Sprintf(`\x%02x`, first)
	}
	q := strconv.QuoteRune(r)
	return q[1 : len(q)-1]
}

// shown is s on one line, with what can not be seen escaped.
func shown(s string) template.HTML {
	var b bytes.Buffer
	for i, part := range strings.Split(clip(s, maxShown), "\n") {
		if i > 0 {
			b.WriteString(`<b class=x>\n</b>`)
		}
		writeText(&b, part)
	}
	return template.HTML(b.String()) // writeText has escaped it
}

// block is s with its lines kept, cut to what people read.
func block(s string) template.HTML {
	var b bytes.Buffer
	s = clip(strings.TrimRight(s, "\n"), maxBlock)
	for i, l := range strings.SplitAfter(s, "\n") {
		if i == maxBlockLines {
			b.WriteString("… cut")
			break
		}
		if text, ok := strings.CutSuffix(l, "\r\n"); ok { // a terminal shows no difference
			l = text + "\n"
		}
		if t := strings.TrimLeft(l, " \t"); strings.HasPrefix(t, "::") { // a workflow command of GitHub's, should somebody print the page there
			b.WriteString(l[:len(l)-len(t)] + "&#58;")
			l = t[1:]
		}
		writeText(&b, l)
	}
	return template.HTML(b.String())
}

// The bounds of what is shown of one string.
const (
	maxShown      = 4 << 10
	maxBlock      = 64 << 10
	maxBlockLines = 400
)

// attribute is s for an attribute that scripts compare and people may read.
func attribute(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[i : i+n])
		} else {
			b.WriteString(escapeRune(r, n, s[i]))
		}
		i += n
	}
	return b.String()
}

// clip cuts s to at most n bytes, at a character, and shows that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// commandLine quotes a command so that it can be pasted into bash. What bash can
// not hold, a NUL byte, is shown escaped.
func commandLine(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			q = attribute(a)
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " ")
}

// link returns the address of a file below qe-artifacts. Only what stands in it as
// a path can follow from the path: every other character is percent-encoded.
func link(root, p string) template.URL {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return template.URL(root + "/" + strings.Join(parts, "/"))
}

func moment(t artifacts.Time) string {
	if t.IsZero() {
		return "not known"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func byteCount(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

func digest(d superqode.Digest) string {
	if d.IsZero() {
		return "not taken"
	}
	return d.String()
}
