package coordinator

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// ToolEdit is what a coding agent's editing tool is about to do to one file.
type ToolEdit struct {
	Path    string // as the tool was told it
	rewrite func(now []byte) (after []byte, ok bool)
}

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

// replacement is one old_string → new_string.
type replacement struct {
	Old  *string `json:"old_string"`
	Old2 *string `json:"old_str"`
	New  string  `json:"new_string"`
	New2 string  `json:"new_str"`
	All  bool    `json:"replace_all"`
}

// toolArgs is the union of what editing tools of Claude Code, Gemini CLI, Cursor
// and Copilot are given; apply_patch, which Codex has, is text.
type toolArgs struct {
	Command  json.RawMessage `json:"command"`
	FilePath string          `json:"file_path"`
	Path     string          `json:"path"`
	Notebook string          `json:"notebook_path"`
	Content  *string         `json:"content"`
	FileText *string         `json:"file_text"`
	Edits    []replacement   `json:"edits"`
	Expected int             `json:"expected_replacements"`
	Line     *int            `json:"insert_line"`
	Input    string          `json:"input"`
	Patch    string          `json:"patch"`
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
	_ = json.Unmarshal(bytes.TrimPrefix(payload, []byte("\xef\xbb\xbf")), &p) // what is not understood changes whole files
	raw := p.Input
	if len(raw) == 0 {
		raw = p.Args
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var args toolArgs
	_ = json.Unmarshal(raw, &args)
	known := map[string]ToolEdit{}
	for _, patch := range []string{text, args.Input, args.Patch, commandText(args.Command)} {
		for _, e := range patchEdits(patch) {
			known[e.Path] = e
		}
	}
	if name := args.FilePath + args.Path; name != "" && (args.FilePath == "" || args.Path == "") {
		if rewrite := args.rewriter(); rewrite != nil {
			known[name] = ToolEdit{name, rewrite}
		}
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

// rewriter returns what the tool makes of a file's contents, or nil.
func (a *toolArgs) rewriter() func([]byte) ([]byte, bool) {
	list := a.Edits
	if a.Old != nil || a.Old2 != nil {
		one := a.replacement
		one.All = one.All || a.Expected > 1
		list = append(list, one)
	}
	switch {
	case a.Content != nil:
		return func([]byte) ([]byte, bool) { return []byte(*a.Content), true }
	case a.FileText != nil:
		return func([]byte) ([]byte, bool) { return []byte(*a.FileText), true }
	case a.Line != nil:
		text := a.New + a.New2
		return func(now []byte) ([]byte, bool) {
			lines := splitLines(now)
			if *a.Line < 0 || *a.Line > len(lines) {
				return nil, false
			}
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			return []byte(strings.Join(slices.Insert(lines, *a.Line, text), "")), true
		}
	case len(list) > 0:
		return func(now []byte) ([]byte, bool) { return replaceAll(now, list) }
	}
	return nil
}

// replaceAll carries replacements out, each on what the last one made.
func replaceAll(now []byte, list []replacement) ([]byte, bool) {
	for _, r := range list {
		old, fresh := r.Old, r.New
		if old == nil {
			old, fresh = r.Old2, r.New2
		}
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
		case r.All:
			now = bytes.ReplaceAll(now, []byte(*old), []byte(fresh))
		case bytes.Count(now, []byte(*old)) > 1: // the tool would choose, or refuse
			return nil, false
		default:
			now = bytes.Replace(now, []byte(*old), []byte(fresh), 1)
		}
	}
	return now, true
}
