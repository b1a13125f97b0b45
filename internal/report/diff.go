package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// The bounds of the page: what is beyond is counted, and stands in the patch.
const (
	maxFiles     = 2000 // paths
	maxDiffRows  = 8000 // lines of diffs in all
	maxFileRows  = 500  // lines of one path's diff
	maxOpenRows  = 800  // lines that are unfolded when the page opens
	maxOpenFile  = 250  // a diff longer than this is folded
	maxOpenFiles = 40
)

// fileView is one changed path of the page.
type fileView struct {
	ID             string
	Path           string // raw
	Name, OldName  template.HTML
	Search         string // lower case, for the filter
	Type           string
	Added, Removed int // -1: not counted
	Mode           string
	Agents         []string
	Note           string
	Cut            string // what was left out, or ""
	Patch          template.URL
	Body           template.HTML
	Open           bool
	Findings       int
	Seen           string
}

// AgentList is the agents' names for an attribute: no name holds a blank.
func (f fileView) AgentList() string { return strings.Join(f.Agents, " ") }

// differ makes the views of all changed paths.
type differ struct {
	code     *coder
	mask     func(string) string
	findings map[string][]artifacts.Finding
	rows     int // left
	open     int // rows left to show unfolded
	files    int // views left to show unfolded
}

func (d *differ) view(n int, c superqode.Change, parts []filePatch) fileView {
	v := fileView{
		ID: fmt.Sprintf("f%d", n), Path: c.Path.String(), Name: shown(c.Path.String()), Type: string(c.Type),
		Search: strings.ToLower(text.Printable(c.Path + " " + c.OldPath)),
		Added:  c.LinesAdded, Removed: c.LinesRemoved, Mode: modeChange(c),
	}
	if !c.OldPath.IsZero() {
		v.OldName = shown(c.OldPath.String())
	}
	if c.Binary {
		v.Added, v.Removed = -1, -1
	}
	if !c.FirstSeen.IsZero() {
		v.Seen = c.FirstSeen.UTC().Format("15:04:05")
	}
	list := d.findings[v.Path]
	v.Findings = len(list)
	var b bytes.Buffer
	placed := map[string]bool{}
	shownRows := 0
	for _, p := range parts {
		if p.note != "" {
			v.Note = p.note
		}
		shownRows += d.hunks(&b, &v, p, placed)
	}
	var top bytes.Buffer
	for _, f := range list {
		if !placed[f.ID] {
			writeFinding(&top, f, true)
		}
	}
	body := b.String()
	if link := uint32(0o120000); c.OldMode == link || c.NewMode == link {
		v.Note, body = "a symbolic link: the line says where it leads", strings.ReplaceAll(body, noNewline, "")
	}
	v.Body = template.HTML(top.String() + body)
	switch {
	case v.Body != "" || v.Note != "":
	case v.Type == string(superqode.ChangeMode):
		v.Note = "only the mode changed"
	case v.Type == string(superqode.ChangeRenamed):
		v.Note = "only the name changed"
	case v.Added <= 0 && v.Removed <= 0 && len(parts) > 0:
		v.Note = "no lines: the file is empty"
	case len(parts) == 0:
		v.Note = "not in the patch"
	}
	if v.Open = d.files > 0 && shownRows <= min(maxOpenFile, d.open); v.Open {
		d.files--
		d.open -= shownRows
	}
	return v
}

// hunks writes the hunks of one part, as far as the page's bounds go.
func (d *differ) hunks(b *bytes.Buffer, v *fileView, p filePatch, placed map[string]bool) (written int) {
	left := 0
	for _, h := range p.hunks {
		list := rows(h, d.mask)
		room := min(d.rows, maxFileRows-written)
		if room <= 0 {
			left += len(list)
			continue
		}
		if len(list) > room {
			left += len(list) - room
			list = list[:room]
		}
		d.rows -= len(list)
		written += len(list)
		d.hunk(b, p, hunkText{head: hunkHead(h), comment: h.Comment, rows: list}, placed)
	}
	if left > 0 {
		v.Cut = fmt.Sprintf("%s more of this diff", text.Plural(left, "line"))
	}
	return written
}

func hunkHead(h *gitdiff.TextFragment) string {
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldPosition, h.OldLines, h.NewPosition, h.NewLines)
}

type hunkText struct {
	head, comment string
	rows          []row
}

func (d *differ) hunk(b *bytes.Buffer, p filePatch, h hunkText, placed map[string]bool) {
	cards := d.place(p.name, h.rows, placed)
	comment := h.comment
	if d.mask != nil {
		comment = d.mask(comment)
	}
	b.WriteString(`<div class=hunk><div class=hh>` + h.head + " ")
	writeText(b, text.Clip(comment, 200))
	b.WriteString("</div>")
	old, now := d.sides(p, h.rows)
	marks := pairMarks(h.rows)
	block, oldLine, newLine := false, 0, 0
	for i, r := range h.rows {
		change := r.op != gitdiff.OpContext
		if change != block {
			b.WriteString(map[bool]string{true: "<div class=ch>", false: "</div>"}[change])
			block = change
		}
		tokens := at(now, newLine)
		if r.op == gitdiff.OpDelete {
			tokens = at(old, oldLine)
		}
		oldLine, newLine = oldLine+one(r.old), newLine+one(r.new)
		writeRow(b, r, tokens, marks[i])
		for _, f := range cards[i] {
			if block {
				b.WriteString("</div>")
			}
			writeFinding(b, f, false)
			if block {
				b.WriteString("<div class=ch>")
			}
		}
	}
	if block {
		b.WriteString("</div>")
	}
	b.WriteString("</div>\n")
}

func one(line int) int { return min(line, 1) }

// place says after which row each finding of the path stands: the last one of its
// lines that the hunk shows.
func (d *differ) place(name string, list []row, placed map[string]bool) map[int][]artifacts.Finding {
	out := map[int][]artifacts.Finding{}
	for _, f := range d.findings[name] {
		if f.Lines == nil || placed[f.ID] {
			continue
		}
		for i, r := range slices.Backward(list) {
			if r.new >= f.Lines.Start && r.new <= f.Lines.End {
				out[i] = append(out[i], f)
				placed[f.ID] = true
				break
			}
		}
	}
	return out
}

// sides highlights the two versions that a hunk shows parts of.
func (d *differ) sides(p filePatch, list []row) (old, now [][]chroma.Token) {
	var a, b strings.Builder
	removed := false
	for _, r := range list {
		if len(r.text) > maxLine {
			return nil, nil
		}
		if r.op != gitdiff.OpAdd {
			a.WriteString(r.text + "\n")
		}
		if r.op != gitdiff.OpDelete {
			b.WriteString(r.text + "\n")
		}
		removed = removed || r.op == gitdiff.OpDelete
	}
	if removed {
		old = d.code.lines(cmp.Or(p.old, p.name), a.String())
	}
	return old, d.code.lines(p.name, b.String())
}

func at(lines [][]chroma.Token, i int) []chroma.Token {
	if i >= len(lines) {
		return nil
	}
	return lines[i]
}

// pairMarks finds what changed inside the lines of blocks that replace as many
// lines as they take.
func pairMarks(list []row) map[int]span {
	marks := map[int]span{}
	for i := 0; i < len(list); {
		from := i
		for i < len(list) && list[i].op == gitdiff.OpDelete {
			i++
		}
		mid := i
		for i < len(list) && list[i].op == gitdiff.OpAdd {
			i++
		}
		if n := mid - from; n > 0 && n == i-mid {
			for k := range n {
				marks[from+k], marks[mid+k] = changedPart(list[from+k].text, list[mid+k].text)
			}
		}
		if i == from {
			i++
		}
	}
	return marks
}

const noNewline = `<b class=x>no newline at the end</b>`

// writeRow writes one line: its numbers stand in attributes, so that a copied
// diff does not hold them.
func writeRow(b *bytes.Buffer, r row, tokens []chroma.Token, mark span) {
	kind, element := "", "code"
	switch r.op {
	case gitdiff.OpAdd:
		kind, element = " a", "ins"
	case gitdiff.OpDelete:
		kind, element = " d", "del"
	}
	b.WriteString(`<div class="l` + kind + `"><span class=n`)
	number(b, r.old)
	b.WriteString(`></span><span class=n`)
	number(b, r.new)
	b.WriteString(`></span><` + element + `>`)
	writeLine(b, r.text, tokens, mark)
	if r.noEOL {
		b.WriteString(noNewline)
	}
	b.WriteString("</" + element + "></div>")
}

func number(b *bytes.Buffer, n int) {
	if n > 0 {
		fmt.Fprintf(b, ` data-n=%d`, n)
	}
}

// writeFinding writes a finding where its lines are; outside says that they are
// not in the diff.
func writeFinding(b *bytes.Buffer, f artifacts.Finding, outside bool) {
	severity, id := template.HTMLEscapeString(string(f.Severity)), template.HTMLEscapeString(f.ID)
	fmt.Fprintf(b, `<div class="fd sev-%s"><a href="#finding-%s"><b>%s</b> `, severity, id, severity)
	writeText(b, strings.ReplaceAll(text.Clip(f.Title, 300), "\n", " "))
	b.WriteString("</a>")
	switch {
	case f.Lines == nil:
		b.WriteString(" <span>about the whole file</span>")
	case outside && f.Lines.Start == f.Lines.End:
		fmt.Fprintf(b, " <span>line %d, outside of this diff</span>", f.Lines.Start)
	case outside:
		fmt.Fprintf(b, " <span>lines %d–%d, outside of this diff</span>", f.Lines.Start, f.Lines.End)
	case f.Lines.Start != f.Lines.End:
		fmt.Fprintf(b, " <span>lines %d–%d</span>", f.Lines.Start, f.Lines.End)
	}
	b.WriteString("</div>")
}

// filePatch is a patch's part about one path.
type filePatch struct {
	name, old string // "" where it does not exist
	note      string // why no lines are shown, or ""
	hunks     []*gitdiff.TextFragment
}

// maxFilePatch bounds the part about one path that is read, in bytes.
const maxFilePatch = 1 << 20

// parsePatch takes a patch in git's format apart. Each path is read for itself, so
// that one part that cannot be read leaves the others.
func parsePatch(patch []byte) []filePatch {
	var out []filePatch
	const head = "diff --git "
	start := bytes.Index(patch, []byte(head))
	if start > 0 && patch[start-1] != '\n' {
		start = -1
	}
	for start >= 0 && start < len(patch) {
		// A line of a hunk begins with a blank, +, - or \, and one of a binary
		// patch holds no blank, so no contents are taken for a head.
		part := patch[start:]
		if next := bytes.Index(part, []byte("\n"+head)); next >= 0 {
			part = part[:next+1]
		}
		start += len(part)
		out = append(out, parsePart(part))
	}
	return out
}

// parsePart reads the part about one path.
func parsePart(part []byte) filePatch {
	body, note := part, ""
	if i := bytes.Index(part, []byte("\nGIT binary patch\n")); i >= 0 {
		body, note = part[:i+1], "binary contents"
	} else if len(part) > maxFilePatch {
		if i = bytes.Index(part, []byte("\n--- ")); i >= 0 {
			body, note = part[:i+1], fmt.Sprintf("too big to show: %s of patch", text.Size(int64(len(part))))
		}
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(body))
	if err != nil || len(files) != 1 {
		line, _, _ := bytes.Cut(part, []byte("\n"))
		return filePatch{name: guessName(string(line)), note: "this part of the patch could not be read"}
	}
	f := files[0]
	if f.IsBinary {
		note = cmp.Or(note, "binary contents")
	}
	return filePatch{name: cmp.Or(f.NewName, f.OldName), old: f.OldName, note: note, hunks: f.TextFragments}
}

// guessName takes the second half of `diff --git a/x b/x`.
func guessName(line string) string {
	rest := strings.TrimPrefix(line, "diff --git ")
	if n := len(rest); n > 4 && n%2 == 1 && rest[n/2] == ' ' {
		return strings.TrimPrefix(rest[n/2+1:], "b/")
	}
	return rest
}

// row is one line of a hunk as it is shown.
type row struct {
	op       gitdiff.LineOp
	old, new int // 1-based, 0 where the line does not exist
	text     string
	noEOL    bool
}

// rows numbers the lines of a hunk. mask hides secrets in them; it is given the
// lines of one kind that stand together, because a key goes over several.
func rows(h *gitdiff.TextFragment, mask func(string) string) []row {
	out := make([]row, 0, len(h.Lines))
	old, now := int(h.OldPosition), int(h.NewPosition)
	for _, l := range h.Lines {
		r := row{op: l.Op}
		r.text = strings.TrimSuffix(l.Line, "\n")
		r.noEOL = r.text == l.Line
		if l.Old() {
			r.old = old
			old++
		}
		if l.New() {
			r.new = now
			now++
		}
		out = append(out, r)
	}
	if mask != nil {
		maskRows(out, mask)
	}
	return out
}

func maskRows(list []row, mask func(string) string) {
	for from := 0; from < len(list); {
		to := from
		var b strings.Builder
		for to < len(list) && list[to].op == list[from].op {
			b.WriteString(list[to].text)
			b.WriteByte('\n')
			to++
		}
		before := b.String()
		after := mask(before)
		if after != before {
			lines := strings.Split(strings.TrimSuffix(after, "\n"), "\n")
			for i := from; i < to; i++ {
				list[i].text = ""
				if i-from < len(lines) {
					list[i].text = lines[i-from]
				}
			}
			if rest := len(lines) - (to - from); rest > 0 { // no mask makes more lines
				list[to-1].text = "[masked]"
			}
		}
		from = to
	}
}
