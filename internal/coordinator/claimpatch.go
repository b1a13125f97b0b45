package coordinator

import (
	"slices"
	"strings"
)

// hunkText is one "@@" part of an apply_patch text: the lines that it looks for
// and what it puts there.
type hunkText struct {
	anchors    []string // from the @@ lines: where to look, after these lines
	old, fresh []string
	end        bool // *** End of File
}

// patchEdits reads the edits of an apply_patch text (*** Begin Patch). Files that
// are added, deleted or moved are edited as a whole.
func patchEdits(text string) []ToolEdit {
	var out []ToolEdit
	var hunks []hunkText
	name := ""
	finish := func() {
		if name != "" {
			list := hunks
			e := ToolEdit{Path: name, rewrite: func(now []byte) ([]byte, bool) { return applyHunks(now, list) }}
			for _, h := range list {
				e.Texts = append(e.Texts, Replaced{strings.Join(h.old, "\n"), strings.Join(h.fresh, "\n")})
			}
			out = append(out, e)
		}
		name, hunks = "", nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "*** "); ok {
			switch what, arg, _ := strings.Cut(rest, ": "); what {
			case "Update File":
				finish()
				name = arg
			case "Move to":
				name = "" // all of it goes elsewhere
			case "End of File":
				if len(hunks) > 0 {
					hunks[len(hunks)-1].end = true
				}
			default:
				finish()
			}
			continue
		}
		if name == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "@@"); ok {
			if n := len(hunks); n == 0 || len(hunks[n-1].old)+len(hunks[n-1].fresh) > 0 {
				hunks = append(hunks, hunkText{})
			}
			if rest = strings.TrimPrefix(rest, " "); rest != "" {
				h := &hunks[len(hunks)-1]
				h.anchors = append(h.anchors, rest)
			}
			continue
		}
		if len(hunks) == 0 {
			hunks = append(hunks, hunkText{})
		}
		hunks[len(hunks)-1].line(line)
	}
	finish()
	return out
}

func (h *hunkText) line(line string) {
	switch {
	case line == "":
		h.old, h.fresh = append(h.old, ""), append(h.fresh, "")
	case line[0] == '-':
		h.old = append(h.old, line[1:])
	case line[0] == '+':
		h.fresh = append(h.fresh, line[1:])
	case line[0] == ' ':
		h.old, h.fresh = append(h.old, line[1:]), append(h.fresh, line[1:])
	}
}

// applyHunks carries the hunks out in order, each below the last one.
func applyHunks(now []byte, hunks []hunkText) ([]byte, bool) {
	lines := strings.Split(string(now), "\n")
	from := 0
	for _, h := range hunks {
		for _, a := range h.anchors {
			at := slices.IndexFunc(lines[from:], func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(a) })
			if at < 0 {
				return nil, false
			}
			from += at + 1
		}
		at := find(lines, h.old, from)
		if len(h.old) == 0 && len(h.anchors) == 0 { // nothing to look for: it goes to the end
			at = len(lines)
			if at > 0 && lines[at-1] == "" {
				at--
			}
		}
		if at < 0 {
			return nil, false
		}
		lines = slices.Replace(lines, at, at+len(h.old), h.fresh...)
		from = at + len(h.fresh)
	}
	return []byte(strings.Join(lines, "\n")), true
}

func find(lines, want []string, from int) int {
	for i := from; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) {
			return i
		}
	}
	return -1
}
