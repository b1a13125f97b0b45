package guard

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Snippet is what makes a coding agent ask guard check before it runs a command,
// and claim check before it edits a file, and track afterwards.
type Snippet struct {
	Text  string   // the file's contents, or what to merge into it
	Where []string // the files in which it belongs, and what to mind
}

// AgentSnippet returns the configuration of one agent's hooks, after its own
// documentation (see Format). program is how the agent finds superqode.
func AgentSnippet(f Format, program string) (Snippet, error) {
	command := shellWord(program) + " guard check --format " + string(f)
	claims := shellWord(program) + " claim check --format " + string(f)
	track := shellWord(program) + " track --format " + string(f)
	group := func(matcher, command string, timeout int) any {
		return ordered{{"matcher", matcher}, {"hooks", []any{ordered{{"type", "command"}, {"command", command}, {"timeout", timeout}}}}}
	}
	both := func(before, after, runs, edits string, timeout int) any {
		return ordered{{"hooks", ordered{
			{before, []any{group(runs+"|"+edits, command, timeout), group(edits, claims, timeout)}},
			{after, []any{group(edits, track, timeout)}},
		}}}
	}
	var doc any
	var where []string
	switch f {
	case Claude:
		doc = both("PreToolUse", "PostToolUse", "Bash", "Write|Edit|MultiEdit|NotebookEdit", 10)
		where = []string{"merge into .claude/settings.json of the repository, or ~/.claude/settings.json for all of them"}
	case Codex:
		doc = both("PreToolUse", "PostToolUse", "Bash", "apply_patch", 10)
		where = []string{"merge into .codex/hooks.json of the repository, or ~/.codex/hooks.json for all of them", "Codex runs it after it was reviewed and trusted: /hooks"}
	case Gemini:
		doc = both("BeforeTool", "AfterTool", "run_shell_command", "write_file|replace", 10000)
		where = []string{"merge into .gemini/settings.json of the repository, or ~/.gemini/settings.json for all of them"}
	case Cursor:
		entry := ordered{{"command", command}, {"timeout", 10}, {"failClosed", true}}
		edits := ordered{{"command", claims}, {"matcher", "Write|Edit|Delete"}, {"timeout", 10}, {"failClosed", true}}
		done := ordered{{"command", track}, {"timeout", 10}}
		doc = ordered{{"version", 1}, {"hooks", ordered{{"beforeShellExecution", []any{entry}}, {"preToolUse", []any{edits}}, {"afterFileEdit", []any{done}}}}}
		where = []string{"merge into .cursor/hooks.json of the repository, or ~/.cursor/hooks.json for all of them"}
	case Copilot:
		entry := func(command string) any {
			return ordered{{"type", "command"}, {"bash", command}, {"timeoutSec", 10}}
		}
		doc = ordered{{"version", 1}, {"hooks", ordered{{"preToolUse", []any{entry(command), entry(claims)}}, {"postToolUse", []any{entry(track)}}}}}
		where = []string{"save as .github/hooks/superqode.json of the repository, or ~/.copilot/hooks/superqode.json for all of them"}
	default:
		return Snippet{}, superqode.Errorf(superqode.ErrUsage, "%q is no coding agent whose hooks are known", string(f))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return Snippet{Text: b.String(), Where: where}, err
}

// ordered is a JSON object whose keys stay in order.
type ordered []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members as they stand.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		var v bytes.Buffer
		e := json.NewEncoder(&v)
		e.SetEscapeHTML(false)
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(bytes.TrimRight(v.Bytes(), "\n"))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// shellWord quotes a word for a shell, if it needs it.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./+:@%,", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
