package report

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// writeText writes s as text of an HTML element. What can not be seen, or would
// reorder what stands around it, is written as an escape sequence in an element of
// its own, so that it can be told from the same letters in a file: control
// characters, direction overrides, U+2028, bytes that are not UTF-8. Tabs stay, and
// so do newlines, which only texts of several lines have.
func writeText(b *bytes.Buffer, s string) {
	for part, escaped := range text.Printables(s, "\t\n") {
		if escaped {
			part = "<b class=x>" + part + "</b>"
		} else {
			part = html.EscapeString(part)
		}
		b.WriteString(part)
	}
}

// shown is s on one line, with what can not be seen escaped.
func shown(s string) template.HTML {
	var b bytes.Buffer
	for i, part := range strings.Split(text.Clip(s, maxShown), "\n") {
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
	s = text.Clip(strings.TrimRight(s, "\n"), maxBlock)
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

func digest(d superqode.Digest) string {
	if d.IsZero() {
		return "not taken"
	}
	return d.String()
}
