package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// Format is a way of asking and answering: text and json for people and
// scripts, the others are coding agents' pre-tool hooks.
type Format string

// The formats. Their sources: Claude Code hooks reference (PreToolUse); Codex
// developers.openai.com/codex/hooks (the same wire format); Gemini CLI
// docs/hooks/reference.md (BeforeTool); Cursor cursor.com/docs/hooks
// (beforeShellExecution, preToolUse); GitHub Copilot CLI hooks reference
// (preToolUse).
const (
	Text    Format = "text"
	JSON    Format = "json"
	Claude  Format = "claude"
	Codex   Format = "codex"
	Gemini  Format = "gemini"
	Cursor  Format = "cursor"
	Copilot Format = "copilot"
)

// Formats lists every format.
func Formats() []Format { return []Format{Text, JSON, Claude, Codex, Gemini, Cursor, Copilot} }

// ParseFormat returns the format of that name, or an error that wraps
// superqode.ErrUsage.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", superqode.Errorf(superqode.ErrUsage, "unknown format %q", name)
}

// Request is what an agent is about to do.
type Request struct {
	Tool    string   // the agent's name for the tool, "" outside of hooks
	Command string   // the shell line, "" when the tool runs none
	Dir     string   // absolute working directory, "" when it was not told
	Writes  []string // files that the tool writes by itself
	After   bool     // an event that tells of something done, or of no tool at all: nothing is left to decide
}

const maxPayload = 16 << 20

// payload is the union of what the agents send.
type payload struct {
	Event     string          `json:"hook_event_name"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	CamelName string          `json:"toolName"`
	CamelArgs json.RawMessage `json:"toolArgs"`
	Command   json.RawMessage `json:"command"`
	Dir       string          `json:"cwd"`
	Roots     []string        `json:"workspace_roots"`
}

// toolInput is the union of the tools' arguments.
type toolInput struct {
	Command      json.RawMessage `json:"command"`
	Cmd          json.RawMessage `json:"cmd"`
	Script       json.RawMessage `json:"script"`
	Dir          string          `json:"cwd"`
	WorkDir      string          `json:"workdir"`
	WorkingDir   string          `json:"working_directory"`
	Directory    string          `json:"directory"`
	DirPath      string          `json:"dir_path"`
	FilePath     string          `json:"file_path"`
	Path         string          `json:"path"`
	NotebookPath string          `json:"notebook_path"`
	CamelPath    string          `json:"filePath"` // the editor's Copilot
	TargetFile   string          `json:"target_file"`
	Files        json.RawMessage `json:"files"`
	Replacements []struct {
		FilePath string `json:"filePath"`
	} `json:"replacements"`
	Input string `json:"input"`
	Patch string `json:"patch"`
	Chars string `json:"chars"` // what is typed into a shell that runs already
}

// written are the files that an editing tool is about to write, each once.
func (in *toolInput) written() []string {
	names := []string{in.FilePath, in.Path, in.NotebookPath, in.CamelPath, in.TargetFile}
	var more []string
	if json.Unmarshal(in.Files, &more) == nil { // else they are no list of names, and another tool's
		names = append(names, more...)
	}
	for _, r := range in.Replacements {
		names = append(names, r.FilePath)
	}
	var out []string
	for _, name := range names {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Decode reads a request. For Text and JSON the input is the command line
// itself; for the hooks it is one JSON object. A tool that runs no command gives
// a Request without one, which CheckRequest allows. An input that cannot be
// understood is an error that wraps superqode.ErrUsage; callers answer it with
// Refuse, since an agent whose question is not understood must not run
// unguarded.
func Decode(f Format, in io.Reader) (Request, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	if err != nil {
		return Request{}, fmt.Errorf("read the request: %w", err)
	}
	if len(data) > maxPayload {
		return Request{}, superqode.Errorf(superqode.ErrUsage, "the request is larger than %d MiB", maxPayload>>20)
	}
	if f == Text || f == JSON {
		return Request{Command: string(data)}, nil
	}
	var p payload
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &p); err != nil {
		return Request{}, superqode.Errorf(superqode.ErrUsage,
			"the %s hook's input is not the expected JSON object: %s", f, jsonProblem(err))
	}
	return p.request(f)
}

// jsonProblem says in words what is wrong with a JSON text.
func jsonProblem(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "it"
		if t.Field != "" {
			what = t.Field
		}
		return what + " is of the type " + t.Value
	}
	return err.Error()
}

// asksBefore reports whether an event is one that comes before a tool runs. Claude
// Code, Codex: PreToolUse, PermissionRequest. Gemini CLI: BeforeTool. Cursor:
// beforeShellExecution, preToolUse. An event without a name is taken for one.
func asksBefore(event string) bool {
	name := strings.ToLower(event)
	for _, prefix := range []string{"pre", "before", "permission"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == ""
}

func (p payload) request(f Format) (Request, error) {
	r := Request{Tool: p.ToolName + p.CamelName, Dir: p.Dir, After: !asksBefore(p.Event)}
	if r.Dir == "" && len(p.Roots) > 0 {
		r.Dir = p.Roots[0]
	}
	raw := p.ToolInput
	if len(raw) == 0 {
		raw = p.CamelArgs
	}
	if len(raw) == 0 && len(p.Command) == 0 && r.Tool == "" {
		if p.Event != "" { // a session that starts or ends, a prompt, a file that is read: no tool runs
			r.After = true
			return r, nil
		}
		return Request{}, superqode.Errorf(superqode.ErrUsage,
			"the %s hook's input names neither a tool nor a command", f)
	}
	var err error
	if len(p.Command) > 0 && (r.Tool == "" || f == Cursor && len(raw) == 0) { // Cursor's beforeShellExecution
		if r.Command, err = commandText(p.Command); err != nil {
			return Request{}, err
		}
		if r.Tool == "" {
			r.Tool = p.Event
		}
		return r, nil
	}
	if len(raw) == 0 || string(raw) == "null" {
		return r, nil
	}
	var in toolInput
	var inner string
	if json.Unmarshal(raw, &inner) == nil { // Copilot sends the arguments as a JSON text inside a string
		raw = json.RawMessage(inner)
		if !json.Valid(raw) { // apply_patch and the like: free text
			if runsCommands(r.Tool) {
				r.Command = inner
			}
			r.addPatch(inner)
			return r, nil
		}
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		if raw[0] != '{' {
			return r, nil // a tool whose arguments are no object runs no command
		}
		return Request{}, superqode.Errorf(superqode.ErrUsage, "the %s hook's tool arguments cannot be read: %s", f,
			jsonProblem(err))
	}
	return r.fill(in)
}

func (r Request) fill(in toolInput) (Request, error) {
	for _, d := range []string{in.Dir, in.WorkDir, in.WorkingDir, in.Directory, in.DirPath} {
		if d != "" {
			r.Dir = cmdline.Under(r.Dir, d)
		}
	}
	for _, raw := range []json.RawMessage{in.Command, in.Cmd, in.Script} {
		if len(raw) == 0 || r.Command != "" {
			continue
		}
		text, err := commandText(raw)
		if err != nil {
			return Request{}, err
		}
		if strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") {
			r.addPatch(text)
			continue
		}
		r.Command = text
	}
	if writesFiles(r.Tool) {
		r.Writes = append(r.Writes, in.written()...)
		r.Command = "" // an editor's "command" is create or str_replace, no shell text
	}
	if typed := in.Chars + in.Input; r.Command == "" && runsCommands(r.Tool) {
		r.Command = typed
	}
	r.addPatch(in.Input)
	r.addPatch(in.Patch)
	return r, nil
}

// runsCommands reports whether a tool is a shell, or types into one: Bash,
// run_shell_command, write_stdin, write_bash, run_in_terminal.
func runsCommands(tool string) bool {
	name := strings.ToLower(tool)
	for _, part := range []string{"bash", "shell", "terminal", "write_stdin", "exec_command"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// commandText is a command given as text or as an argument list.
func commandText(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var argv []string
	if err := json.Unmarshal(raw, &argv); err != nil {
		return "", superqode.Errorf(superqode.ErrUsage, "the command is neither a text nor a list of words")
	}
	for i, w := range argv {
		argv[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(argv, " "), nil
}

// writesFiles reports whether a tool is an editor.
func writesFiles(tool string) bool {
	switch strings.ToLower(tool) {
	case "write", "edit", "multiedit", "notebookedit", "write_file", "replace", "create", "str_replace_editor",
		"str_replace_based_edit_tool", "delete", "apply_patch",
		"str_replace", "strreplace", "insert", "edit_file", "search_replace", "delete_file",
		"create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file", "edit_notebook_file", "editfiles":
		return true
	}
	return false
}

// addPatch takes the file names of an apply_patch text.
func (r *Request) addPatch(text string) {
	for line := range strings.Lines(text) {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				r.Writes = append(r.Writes, name)
			}
		}
	}
}
