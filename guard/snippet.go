package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Snippet is what makes a coding agent ask guard check before it runs a command,
// and claim check before it edits a file, and track afterwards.
type Snippet struct {
	Text  string   // the file's contents, or what to merge into it
	Where []string // the files in which it belongs, and what to mind
}

// AgentSnippet returns the configuration of one agent's hooks, after its own
// documentation (see Format). program is how the agent finds superqode. Where the agent
// lets a hook decide what its failure means, a guard that cannot be started blocks.
// Copilot takes every failure for a refusal and has its file committed, so there a clone
// without superqode asks nobody.
func AgentSnippet(f Format, program string) (Snippet, error) {
	call := func(what string) string {
		quoted := text.QuotePOSIX(program)
		what = quoted + what + string(f)
		if f == Copilot {
			what = "command -v " + quoted + " >/dev/null 2>&1 || exit 0; " + what
		}
		return quoteJSON(what)
	}
	command, claims, track := call(" guard check --policy destructive --format "), call(" claim check --format "), call(" track --format ")
	group := func(matcher, command, more string, timeout int) string {
		return fmt.Sprintf(`{"matcher":%q,"hooks":[{"type":"command","command":%s,"timeout":%d%s}]}`, matcher, command,
			timeout, more)
	}
	both := func(before, after, runs, edits string, timeout int) string {
		blocks := ""
		if f == Claude { // 2.1.295 and newer; before, a hook that cannot be started lets pass
			blocks = `,"onFailure":"block"`
		}
		return fmt.Sprintf(`{"hooks":{%q:[%s,%s],%q:[%s]}}`, before, group(runs+"|"+edits, command, blocks, timeout),
			group(edits, claims, blocks, timeout), after, group(edits, track, "", timeout))
	}
	var doc string
	var where []string
	switch f {
	case Claude:
		doc = both("PreToolUse", "PostToolUse", "Bash", "Write|Edit|MultiEdit|NotebookEdit", 10)
		where = []string{"merge into .claude/settings.json of the repository, " +
			"or ~/.claude/settings.json for all of them"}
	case Codex:
		doc = both("PreToolUse", "PostToolUse", "Bash", "apply_patch", 10)
		where = []string{"merge into .codex/hooks.json of the repository, or ~/.codex/hooks.json for all of them",
			"Codex runs it after it was reviewed and trusted: /hooks"}
	case Gemini:
		doc = both("BeforeTool", "AfterTool", "run_shell_command", "write_file|replace", 10000)
		where = []string{"merge into .gemini/settings.json of the repository, " +
			"or ~/.gemini/settings.json for all of them"}
	case Cursor:
		doc = fmt.Sprintf(`{"version":1,"hooks":{`+
			`"beforeShellExecution":[{"command":%s,"timeout":10,"failClosed":true}],`+
			`"preToolUse":[{"command":%s,"matcher":"Write|Edit|Delete","timeout":10,"failClosed":true}],`+
			`"afterFileEdit":[{"command":%s,"timeout":10}]}}`, command, claims, track)
		where = []string{"merge into .cursor/hooks.json of the repository, or ~/.cursor/hooks.json for all of them"}
	case Copilot:
		edits := "create|edit|apply_patch|str_replace_editor"
		entry := func(matcher, command string) string {
			return fmt.Sprintf(`{"matcher":%q,"type":"command","bash":%s,"timeoutSec":10}`, matcher, command)
		}
		doc = fmt.Sprintf(`{"version":1,"hooks":{"preToolUse":[%s,%s],"postToolUse":[%s]}}`,
			entry("bash|powershell|"+edits, command), entry(edits, claims), entry(edits, track))
		where = []string{"save as .github/hooks/superqode.json of the repository, " +
			"or ~/.copilot/hooks/superqode.json for all of them"}
	default:
		return Snippet{}, superqode.Errorf(superqode.ErrUsage, "%q is no coding agent whose hooks are known", string(f))
	}
	var b bytes.Buffer
	err := json.Indent(&b, []byte(doc+"\n"), "", "  ")
	return Snippet{Text: b.String(), Where: where}, err
}

// quoteJSON is a text as JSON, "<" and "&" as they are.
func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
