package coordinator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// byteOrderMark is what some programs begin a text with.
const byteOrderMark = "\xef\xbb\xbf"

// ToolEdit is what a coding agent's editing tool is about to do to one file.
type ToolEdit struct {
	Path    string     // as the tool got it
	Texts   []Replaced // what it puts in the place of what, where the tool tells
	rewrite func(now []byte) (after []byte, ok bool)
}

// Replaced is one text that a tool puts in the place of another. What is
// inserted replaces nothing.
type Replaced struct{ Old, New string }

// Lines returns which lines of the file as it is now the tool would change, an
// empty list when none, and the whole file where the tool does not tell, or the
// text to replace is not there.
func (e ToolEdit) Lines(now []byte) []Lines {
	if e.rewrite == nil {
		return []Lines{{}}
	}
	after, ok := e.rewrite(now)
	if !ok {
		return []Lines{{}}
	}
	return NewLineMap(now, after).Changed()
}

// replacement is one old_string → new_string, in the words of the tools that make
// them.
type replacement struct {
	Old  *string `json:"old_string"`
	Old2 *string `json:"old_str"`
	Old3 *string `json:"oldString"`
	New  *string `json:"new_string"`
	New2 *string `json:"new_str"`
	New3 *string `json:"newString"`
	All  bool    `json:"replace_all"`
	All2 bool    `json:"replaceAll"`
}

// texts returns the two texts; old is nil where nothing is replaced, and told is
// false for what is no replacement at all.
func (r *replacement) texts() (old *string, fresh string, told bool) {
	old = cmp.Or(r.Old, r.Old2, r.Old3)
	if p := cmp.Or(r.New, r.New2, r.New3); p != nil {
		fresh, told = *p, true
	}
	return old, fresh, told || old != nil
}

// toolArgs is the union of what editing tools of Claude Code, Gemini CLI, Cursor
// and Copilot are given; apply_patch, which Codex has, is text.
type toolArgs struct {
	Command   json.RawMessage `json:"command"`
	FilePath  string          `json:"file_path"`
	Path      string          `json:"path"`
	CamelPath string          `json:"filePath"`
	Content   *string         `json:"content"`
	FileText  *string         `json:"file_text"`
	Edits     []replacement   `json:"edits"`
	Several   []struct {
		FilePath string `json:"filePath"`
		replacement
	} `json:"replacements"`
	Expected int    `json:"expected_replacements"`
	Line     *int   `json:"insert_line"`
	Input    string `json:"input"`
	Patch    string `json:"patch"`
	replacement
}

// ToolEdits reads the edits out of a hook's payload, whose other parts
// guard.Decode has understood: files are what it says that the tool writes. A
// file of which the payload tells no lines is edited as a whole.
func ToolEdits(payload []byte, files []string) []ToolEdit {
	var p struct {
		Input json.RawMessage `json:"tool_input"`
		Args  json.RawMessage `json:"toolArgs"`
	}
	// what is not understood changes whole files
	_ = json.Unmarshal(bytes.TrimPrefix(payload, []byte(byteOrderMark)), &p)
	raw := p.Input
	if len(raw) == 0 {
		raw = p.Args
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if len(raw) == 0 {
		raw = payload // Cursor's afterFileEdit has no tool around its edits
	}
	var args toolArgs
	_ = json.Unmarshal(bytes.TrimPrefix(raw, []byte(byteOrderMark)), &args)
	known := map[string]ToolEdit{}
	for _, patch := range []string{text, args.Input, args.Patch, commandText(args.Command)} {
		for _, e := range patchEdits(patch) {
			known[e.Path] = e
		}
	}
	if name := cmp.Or(args.FilePath, args.Path, args.CamelPath); name != "" &&
		name == args.FilePath+args.Path+args.CamelPath {
		if e, ok := args.edit(name); ok {
			known[name] = e
		}
	}
	for name, list := range args.several() {
		known[name] = replacing(name, list)
	}
	var out []ToolEdit
	for _, f := range files {
		if e, ok := known[f]; ok && !slices.ContainsFunc(out, func(o ToolEdit) bool { return o.Path == f }) {
			out = append(out, e)
			continue
		}
		out = append(out, ToolEdit{Path: f})
	}
	return out
}

// commandText is a command that is one text, or the last word of a list.
func commandText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var words []string
	if json.Unmarshal(raw, &words) == nil && len(words) > 0 {
		return words[len(words)-1]
	}
	return ""
}

// edit returns what the tool does to its one file, if it tells.
func (a *toolArgs) edit(name string) (ToolEdit, bool) {
	list := a.Edits
	if old, _, _ := a.texts(); old != nil {
		one := a.replacement
		one.All = one.All || a.Expected > 1
		list = append(list, one)
	}
	_, fresh, _ := a.texts()
	content := cmp.Or(a.Content, a.FileText)
	switch {
	case content != nil:
		return ToolEdit{Path: name, rewrite: func([]byte) ([]byte, bool) { return []byte(*content), true }}, true
	case a.Line != nil:
		at := *a.Line
		return ToolEdit{name, []Replaced{{New: fresh}},
			func(now []byte) ([]byte, bool) { return insertAt(now, at, fresh) }}, true
	case len(list) > 0:
		return replacing(name, list), true
	}
	return ToolEdit{}, false
}

// several are the replacements of a tool that makes them in several files.
func (a *toolArgs) several() map[string][]replacement {
	list := map[string][]replacement{}
	for _, r := range a.Several {
		list[r.FilePath] = append(list[r.FilePath], r.replacement)
	}
	return list
}

// replacing is the edit that makes replacements.
func replacing(name string, list []replacement) ToolEdit {
	e := ToolEdit{Path: name, rewrite: func(now []byte) ([]byte, bool) { return replaceAll(now, list) }}
	for i := range list {
		if old, fresh, told := list[i].texts(); told {
			r := Replaced{New: fresh}
			if old != nil {
				r.Old = *old
			}
			e.Texts = append(e.Texts, r)
		}
	}
	return e
}

// insertAt puts a text behind a line.
func insertAt(now []byte, line int, text string) ([]byte, bool) {
	lines := splitLines(now)
	if line < 0 || line > len(lines) {
		return nil, false
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(strings.Join(slices.Insert(lines, line, text), "")), true
}

// replaceAll carries replacements out, each on what the last one made.
func replaceAll(now []byte, list []replacement) ([]byte, bool) {
	for _, r := range list {
		old, fresh, _ := r.texts()
		switch {
		case old == nil:
			return nil, false
		case *old == "": // the way to write a new file
			if len(now) > 0 {
				return nil, false
			}
			now = []byte(fresh)
		case !bytes.Contains(now, []byte(*old)):
			return nil, false
		case r.All || r.All2:
			now = bytes.ReplaceAll(now, []byte(*old), []byte(fresh))
		case bytes.Count(now, []byte(*old)) > 1: // the tool would choose, or refuse
			return nil, false
		default:
			now = bytes.Replace(now, []byte(*old), []byte(fresh), 1)
		}
	}
	return now, true
}

// hunkText is one "@@" part of an apply_patch text: the lines that it looks for
// and what it puts there.
type hunkText struct {
	anchors    []string // from the @@ lines: where to look, after these lines
	old, fresh []string
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
			case "End of File": // the file goes on after it in the patch
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
			at := slices.IndexFunc(lines[from:],
				func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(a) })
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
