package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Reply is what a program that speaks a format prints and exits with.
type Reply struct {
	Stdout []byte
	Stderr []byte
	Code   int
}

// Exit codes of Reply: denied for people and scripts (docs/formats.md), and
// blocked for the hooks of Claude Code, Codex and Cursor, which take status 2 for "do
// not run it" with the reason on standard error. Gemini CLI and Copilot read the
// decision on standard output of a hook that ends with 0.
const (
	codeDenied  = 3
	codeBlocked = 2
)

// Encode answers in a format. An allowed request grants nothing: with "allow"
// Claude Code, and others by its example, pass over the user's own permission
// prompt, so the answer is an empty object, which leaves everything as it is
// without the hook. Gemini CLI's "allow" is what it does anyway, and an answer to
// Cursor must name a permission.
func Encode(f Format, line Line) (Reply, error) {
	switch f {
	case Text:
		return encodeText(line.Verdict), nil
	case JSON:
		return encodeJSON(line)
	}
	if line.Denied() {
		return block(f, line.message())
	}
	switch f {
	case Claude, Codex, Copilot:
		return reply(map[string]any{}, 0)
	case Gemini:
		return reply(map[string]any{"decision": "allow"}, 0)
	case Cursor:
		return reply(map[string]any{"permission": "allow"}, 0)
	}
	return Reply{}, superqode.Errorf(superqode.ErrUsage, "unknown format %q", f)
}

// Refuse answers a request that could not be read: it makes hooks block.
func Refuse(f Format, err error) (Reply, error) {
	if f == Text || f == JSON {
		return Reply{Stderr: []byte(err.Error() + "\n"), Code: 1}, nil
	}
	return block(f, "superqode guard could not read the request, so nothing may run: "+err.Error())
}

// Block blocks a tool in an agent's hook protocol for a reason of the caller's
// own. It returns an error that wraps superqode.ErrUsage for Text and JSON, which
// are no hooks.
func Block(f Format, message string) (Reply, error) { return block(f, message) }

func block(f Format, message string) (Reply, error) {
	var body map[string]any
	code := codeBlocked
	specific := map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "deny",
		"permissionDecisionReason": message}
	switch f {
	case Claude, Codex:
		body = map[string]any{"hookSpecificOutput": specific}
	case Gemini:
		body, code = map[string]any{"decision": "deny", "reason": message}, 0
	case Cursor:
		body = map[string]any{"permission": "deny", "user_message": message, "agent_message": message}
	case Copilot:
		// The command line reads the outer fields, the editor the inner ones.
		body, code = map[string]any{"permissionDecision": "deny", "permissionDecisionReason": message,
			"hookSpecificOutput": specific}, 0
	default:
		return Reply{}, superqode.Errorf(superqode.ErrUsage, "unknown format %q", f)
	}
	r, err := reply(body, code)
	r.Stderr = []byte(message + "\n")
	return r, err
}

func reply(body any, code int) (Reply, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return Reply{Stdout: b.Bytes(), Code: code}, err
}

// message is the one block that says what was refused, why, and what to do.
func (v Verdict) message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "superqode guard refused %s", v.Operation)
	if len(v.Command) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(v.Command, " "))
	}
	fmt.Fprintf(&b, ": %s.", v.Reason)
	if v.Suggestion != "" {
		fmt.Fprintf(&b, " Instead: %s.", v.Suggestion)
	}
	return b.String()
}

func encodeText(v Verdict) Reply {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", v.Decision)
	if v.Operation != "" {
		fmt.Fprintf(&b, " %s", v.Operation)
	}
	if v.Certainty == Unknown {
		b.WriteString(" (unknown)")
	}
	b.WriteByte('\n')
	if v.Reason != "" {
		fmt.Fprintf(&b, "reason: %s\n", v.Reason)
	}
	if v.Suggestion != "" {
		fmt.Fprintf(&b, "instead: %s\n", v.Suggestion)
	}
	r := Reply{Stdout: []byte(b.String())}
	if v.Denied() {
		r.Code = codeDenied
	}
	return r
}

func encodeJSON(line Line) (Reply, error) {
	code := 0
	if line.Denied() {
		code = codeDenied
	}
	return reply(struct {
		SchemaVersion int `json:"schema_version"`
		Line
	}{1, line}, code)
}

// Block is a denial for a person or a program at a terminal: what was refused,
// why, and what to do instead. st may be nil.
func (v Verdict) Block(st *SessionState) string {
	var b strings.Builder
	words := make([]string, 0, len(v.Command))
	for _, w := range (Attempt{Command: v.Command}).Tidy().Command {
		words = append(words, oneLine(w))
	}
	fmt.Fprintf(&b, "superqode: refused: %s\n", strings.Join(words, " "))
	fmt.Fprintf(&b, "  why: %s (operation %s)\n", v.Reason, v.Operation)
	if v.Suggestion != "" {
		fmt.Fprintf(&b, "  instead: %s\n", v.Suggestion)
	}
	if st != nil && !v.away {
		id := st.ID.String()
		fmt.Fprintf(&b, "  the user, outside of the session, can let it through: superqode guard allow --session %s --once %s\n", id[strings.LastIndexByte(id, '-')+1:], v.Operation)
	}
	return b.String()
}

// oneLine shows a word without what would move a terminal's cursor.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
