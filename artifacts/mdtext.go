package artifacts

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/text"
)

// Everything that a report shows of a session is data: file names, commands,
// titles and evidence may hold Markdown, HTML, terminal escape sequences,
// direction overrides or workflow commands. The functions of this file make a
// string harmless and keep it readable, with `cat` as on GitHub.

// Patterns of the few things that are worth breaking even where Markdown shows
// them as they are: not every reader of a report is a Markdown parser.
const (
	activeTags  = `(?i)<(/?(?:script|style|iframe|object|embed|svg|img|form|input|base|link|meta|html|body|title|textarea|xmp|noembed|noframes|plaintext)\b)`
	activeLinks = `(?i)\]\((\s*(?:javascript|vbscript|data):)`
)

func disarm(s string) string {
	if strings.Contains(s, "<") {
		s = regexp.MustCompile(activeTags).ReplaceAllString(s, `\x3c$1`)
	}
	if strings.Contains(s, "](") {
		s = regexp.MustCompile(activeLinks).ReplaceAllString(s, `]\x28$1`)
	}
	return strings.ReplaceAll(s, "##[", `#\x23[`) // a workflow command of Azure, anywhere in a line
}

// code returns s as a code span for running text. maxCode bounds it: a path may
// have 4096 bytes, a command 128 KiB.
func code(s string) string {
	const maxCode = 1000
	s = text.Clip(disarm(text.Printable(s)), maxCode)
	if s == "" {
		return "(none)"
	}
	if strings.TrimSpace(s) == "" {
		return "(" + strconv.Itoa(len(s)) + " blanks)" // a code span of blanks shows nothing
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " " // one blank on each side is taken off again
	}
	return fence + s + fence
}

// cell returns s as a code span for a table. A bar would end the cell even inside
// a code span, and `\|` is read differently by different parsers.
func cell(s string) string { return strings.ReplaceAll(code(s), "|", `\x7c`) }

// prose returns s as running text without any markup, link, mention or issue
// number in it.
func prose(s string) string {
	s = strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "](", `\]\(`, "[", `\[`, "]", `\]`, "~", `\~`, "|", `\|`, "$", `\$`,
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;", "://", "&#58;//", "::", "&#58;:", "www.", "www&#46;",
		"WWW.", "WWW&#46;",
	).Replace(text.Clip(text.Printable(s), 2000))
	return strings.TrimSpace(s)
}

// block returns s as a fenced code block, its lines kept, cut to a size that
// people read.
func block(lang, s string) string {
	const maxLines, maxBytes = 60, 8000
	lines := strings.Split(strings.TrimRight(text.Clip(s, maxBytes), "\n"), "\n")
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], "… cut")
	}
	for i, l := range lines {
		parts := strings.Split(strings.TrimSuffix(l, "\r"), "\t")
		for k := range parts {
			parts[k] = text.Printable(parts[k])
		}
		l = disarm(strings.Join(parts, "\t"))
		if t := strings.TrimLeft(l, " \t"); strings.HasPrefix(t, "::") { // a workflow command of GitHub Actions
			l = l[:len(l)-len(t)] + `\x3a` + t[1:]
		}
		lines[i] = l
	}
	body := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	return fence + lang + "\n" + body + "\n" + fence + "\n"
}

// MarkdownText returns s as running text without any markup in it.
func MarkdownText(s string) string { return prose(s) }

// MarkdownCode returns s as a code span.
func MarkdownCode(s string) string { return code(s) }

// MarkdownCell returns s as a code span for a table.
func MarkdownCell(s string) string { return cell(s) }

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == c {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}
