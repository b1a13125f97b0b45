package hooks

import (
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// agentVariables mark the programs that a coding agent starts. A name with "*" is
// a prefix. They are what the agents set for the shells that they open, as far as
// they say so: Claude Code (CLAUDECODE), Codex (CODEX_SANDBOX, CODEX_THREAD_ID,
// CODEX_CI), Gemini CLI (GEMINI_CLI), Cursor (CURSOR_AGENT), Copilot
// (COPILOT_AGENT…, COPILOT_CLI…), and AI_AGENT, which is meant for all.
//
// What a person sets in a profile for such a tool is no mark: CODEX_HOME,
// COPILOT_MODEL, every AIDER_… (each is one of aider's settings; aider runs git
// without a terminal), CURSOR_TRACE_ID (which the editor's own terminal has, for
// whoever types there).
var agentVariables = []string{"AI_AGENT", "CLAUDECODE", "CLAUDE_CODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_*",
	"GEMINI_CLI", "CURSOR_AGENT", "COPILOT_AGENT*", "COPILOT_CLI*", "OPENCODE", "OPENCODE_CLIENT", "AUGMENT_AGENT", "AMP_CURRENT_THREAD_ID", "GOOSE_TERMINAL", "CLINE_ACTIVE",
	"CRUSH", "KIRO_AGENT_PATH", "SUPERQODE_SESSION_ID"}

// settings are variables that begin like a mark and are a person's.
var settings = []string{"CODEX_HOME", "CODEX_API_KEY", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_RS_SSE_FIXTURE"}

// agentMark returns the first variable of a coding agent in env, or "".
func agentMark(env []string) string {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" || value == "0" || value == "false" || slices.Contains(settings, name) {
			continue
		}
		for _, mark := range agentVariables {
			if prefix, ok := strings.CutSuffix(mark, "*"); name == mark || ok && strings.HasPrefix(name, prefix) {
				return name
			}
		}
	}
	return ""
}

// AtTerminal reports whether a process was started by a person at a terminal:
// it has one, it may read from it (its process group is the one in front), its
// input or its messages are that terminal, and no coding agent marks it. why says
// what speaks against it.
//
// A program that opens a terminal of its own for git (script, expect, an agent
// that marks nothing) looks like a person; guard install --strict is for that.
func AtTerminal(pid int, env []string) (yes bool, why string) {
	if mark := agentMark(env); mark != "" {
		return false, "a coding agent runs it (" + mark + " is set)"
	}
	if superqode.Getenv(env, "CI") == "true" {
		return false, "CI runs it"
	}
	return atTerminal(pid)
}
