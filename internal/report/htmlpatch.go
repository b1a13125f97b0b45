package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/seed-2d964004/superqode/internal/text"
)

// filePatch is a patch's part about one path.
type filePatch struct {
	name, old string // "" where it does not exist
	note      string // why no lines are shown, or ""
	hunks     []*gitdiff.TextFragment
	created   bool
	deleted   bool
	renamed   bool
	binary    bool
	oldMode   string
	newMode   string
}

// maxFilePatch bounds the part about one path that is read, in bytes.
const maxFilePatch = 1 << 20

// parsePatch takes a patch in git's format apart. Each path is read for itself, so
// that one part that can not be read leaves the others.
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
		next := bytes.Index(part, []byte("\n"+head))
		if next >= 0 {
			part = part[:next+1]
			start += next + 1
		} else {
			start = len(patch)
		}
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
	p := filePatch{
		name: f.NewName, old: f.OldName, note: note, hunks: f.TextFragments, created: f.IsNew, deleted: f.IsDelete, renamed: f.IsRename || f.IsCopy,
		binary: f.IsBinary || note == "binary contents",
	}
	if f.OldMode != 0 {
		p.oldMode = fmt.Sprintf("%06o", uint32(f.OldMode))
	}
	if f.NewMode != 0 {
		p.newMode = fmt.Sprintf("%06o", uint32(f.NewMode))
	}
	if p.name == "" {
		p.name = f.OldName
	}
	if p.binary && p.note == "" {
		p.note = "binary contents"
	}
	return p
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
