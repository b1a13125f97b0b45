package report

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

const (
	// maxRows bounds each table of the Markdown report; the JSON has every row.
	maxRows = 200
	// maxSummaryRows bounds each table of a step's summary, which is for a glance.
	maxSummaryRows = 50
	// maxSummary is what a step may write to its summary, a little less than GitHub's
	// limit of 1 MiB: a summary that is longer is not shown at all.
	maxSummary = 1000 << 10
)

// Markdown writes the report for people, readable on a terminal and on GitHub. name
// is the session's, "" for none.
func Markdown(w io.Writer, rep artifacts.Report, name string) error {
	t, err := markdownTemplate()
	if err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	return execute(w, t, NewView(rep, Caller{Name: name}))
}

// StepSummary writes the report as GitHub-flavoured Markdown for a workflow's step:
// what a person wants to see first, with the lists folded.
func StepSummary(w io.Writer, rep artifacts.Report) error {
	t, err := summaryTemplate()
	if err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	var b strings.Builder
	if err := execute(&b, t, NewView(rep, Caller{})); err != nil {
		return err
	}
	out := b.String()
	if len(out) > maxSummary { // cells are bounded, so this takes a report made to be long
		out = strings.ToValidUTF8(out[:maxSummary], "") + "\n\n… cut; the report has all of it.\n"
	}
	_, err = io.WriteString(w, out)
	return err
}

// execute runs a template to its end before anything is written.
func execute(w io.Writer, t *template.Template, data any) error {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The templates are read when the first report is written.
var (
	markdownTemplate = sync.OnceValues(func() (*template.Template, error) {
		return parseMarkdown("report.md.tmpl", maxRows, "\n… and %d more, listed in the JSON report.\n")
	})
	summaryTemplate = sync.OnceValues(func() (*template.Template, error) {
		return parseMarkdown("summary.md.tmpl", maxSummaryRows, "\n… and %d more in the report.\n")
	})
)

// parseMarkdown reads a template whose tables show bound rows; rest says how many
// are left out.
func parseMarkdown(name string, bound int, rest string) (*template.Template, error) {
	return template.New(name).Funcs(words(bound)).Funcs(template.FuncMap{
		"more": func(list any) string {
			if n := length(list) - bound; n > 0 {
				return fmt.Sprintf(rest, n)
			}
			return ""
		},
		"prose": ofAny(prose), "code": ofAny(code), "cell": ofAny(cell), "fenced": codeBlock, "output": output,
		"some": someCells, "commands": commandBlock,
		"blank": func(s string) string {
			if strings.TrimSpace(s) == "" {
				return ""
			}
			return s
		},
		"yes":  func(b bool) string { return map[bool]string{true: "yes", false: "**no**"}[b] },
		"max0": func(n int) int { return max(n, 0) },
		"icon": func(v artifacts.Verdict) string {
			return map[artifacts.Verdict]string{
				artifacts.VerdictPass: "white_check_mark", artifacts.VerdictConditional: "warning",
				artifacts.VerdictFail: "x", artifacts.VerdictBlocked: "no_entry",
			}[v]
		},
	}).ParseFS(assets, "assets/"+name)
}

func ofAny(f func(string) string) func(any) string {
	return func(v any) string { return f(fmt.Sprint(v)) }
}

// output shows the last lines of what a command printed; name is Markdown.
func output(name, s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return fmt.Sprintf("Output of %s:\n\n%s\n", name, codeBlock(s))
}

// someCells lists the first few of many names for one cell.
func someCells(list []string) string {
	var shown []string
	for _, s := range list[:min(len(list), 5)] {
		shown = append(shown, cell(s))
	}
	if n := len(list) - len(shown); n > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(shown, ", ")
}

// commandBlock shows commands as lines of a shell, each with a comment above it.
func commandBlock(list []Command) string {
	var lines []string
	for _, c := range list {
		lines = append(lines, "# "+c.About, c.Line)
	}
	body := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	return fence + "sh\n" + body + "\n" + fence + "\n"
}

// Everything that a report shows of a session is data: file names, commands,
// titles and evidence may hold Markdown, HTML, terminal escape sequences,
// direction overrides or workflow commands. The functions of this file make a
// string harmless and keep it readable, with `cat` as on GitHub.

// Patterns of the few things that are worth breaking even where Markdown shows
// them as they are: not every reader of a report is a Markdown parser.
const (
	activeTags = `(?i)<(/?(?:script|style|iframe|object|embed|svg|img|form|input|base|link|meta|html|body|title|` +
		`textarea|xmp|noembed|noframes|plaintext)\b)`
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

// cell returns s as a code span for a table. A bar would end the cell even inside a
// code span; `\|` is a bar there (GFM, section 4.10), but parsers differ on `\\|`.
func cell(s string) string {
	return strings.NewReplacer(`\|`, `\\x7c`, "|", `\|`).Replace(code(s))
}

// prose returns s as running text without any markup, link, mention or issue
// number in it.
func prose(s string) string {
	s = strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "](", `\]\(`, "[", `\[`, "]", `\]`, "~", `\~`, "|", `\|`,
		"$", `\$`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;", "://", "&#58;//", "::", "&#58;:",
		"www.", "www&#46;", "WWW.", "WWW&#46;",
	).Replace(text.Clip(text.Printable(s), 2000))
	return strings.TrimSpace(s)
}

// codeBlock returns s as a fenced code block, its lines kept, cut to a size that
// people read.
func codeBlock(s string) string {
	const maxLines, maxBytes = 60, 8000
	lines := strings.Split(strings.TrimRight(text.Clip(s, maxBytes), "\n"), "\n")
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], "… cut")
	}
	for i, l := range lines {
		lines[i] = noCommand(disarm(text.PrintableLines(strings.TrimSuffix(l, "\r"))))
	}
	body := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body, '`')+1))
	return fence + "text\n" + body + "\n" + fence + "\n"
}

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
