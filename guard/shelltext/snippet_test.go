package shelltext_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
)

// TestAgentSnippet: each snippet is JSON that calls guard check, claim check and
// track in the agent's own format, and says where it belongs.
func TestAgentSnippet(t *testing.T) {
	t.Parallel()
	for _, f := range guard.Formats()[2:] {
		for program, want := range map[string]string{"superqode": "superqode", "/opt/it's here/superqode": `'/opt/it'\''s here/superqode'`} {
			s, err := guard.AgentSnippet(f, program)
			if err != nil {
				t.Fatal(err)
			}
			var doc struct {
				Hooks map[string][]struct {
					Command string
					Bash    string
					Hooks   []struct{ Command string }
				}
			}
			if err := json.Unmarshal([]byte(s.Text), &doc); err != nil {
				t.Fatalf("%s: %v\n%s", f, err, s.Text)
			}
			var commands []string
			for _, list := range doc.Hooks {
				for _, e := range list {
					if own := e.Command + e.Bash; own != "" {
						commands = append(commands, own)
					}
					for _, h := range e.Hooks {
						commands = append(commands, h.Command)
					}
				}
			}
			slices.Sort(commands)
			if f == guard.Copilot {
				for i, c := range commands {
					commands[i] = strings.TrimPrefix(c, "command -v "+want+" >/dev/null 2>&1 || exit 0; ")
				}
				if n := strings.Count(s.Text, `"matcher"`); n != 3 || strings.Contains(s.Text, `"bash": "superqode`) {
					t.Errorf("%s: every tool of a clone without superqode would be refused:\n%s", f, s.Text)
				}
			}
			if n := strings.Count(s.Text, `"onFailure": "block"`); (n == 2) != (f == guard.Claude) {
				t.Errorf("%s: %d hooks block when they fail", f, n)
			}
			if got := strings.Join(commands, "; "); got != want+" claim check --format "+string(f)+"; "+want+" guard check --policy destructive --format "+string(f)+"; "+want+" track --format "+string(f) {
				t.Errorf("%s: %q", f, got)
			}
			if len(s.Where) == 0 {
				t.Errorf("%s: no place", f)
			}
		}
	}
	for _, f := range guard.Formats()[:2] {
		if _, err := guard.AgentSnippet(f, "superqode"); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestMalformedPayloads: what cannot be understood is blocked in the way of the
// protocol, so that no agent takes a failing hook for a yes.
func TestMalformedPayloads(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "null", "[]", "42", `"git push"`, "{", "{}", "\x00", `{"tool_name":"Bash","tool_input":{"command":{"a":1}}}`, `{"toolName":"bash","toolArgs":{"command":7}}`,
		`{"command":{"a":1}}`, `{"tool_name":7}`, strings.Repeat("[", 100_000),
	} {
		for _, f := range guard.Formats()[2:] {
			_, err := guard.Decode(f, strings.NewReader(in))
			if err == nil {
				t.Errorf("%s: %.40q was understood", f, in)
				continue
			}
			reply, rerr := guard.Refuse(f, err)
			want := 2
			if f == guard.Copilot || f == guard.Gemini {
				want = 0
			}
			if rerr != nil || reply.Code != want || !json.Valid(reply.Stdout) || !strings.Contains(string(reply.Stdout), "deny") || len(reply.Stderr) == 0 {
				t.Errorf("%s: %.40q: %d %q %v", f, in, reply.Code, reply.Stdout, rerr)
			}
		}
	}
}

// TestHarmlessPayloads: a tool that runs no command passes in silence.
func TestHarmlessPayloads(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"tool_name":"Read","tool_input":{"file_path":"x"}}`, `{"tool_name":"Bash","tool_input":{"command":"ls"}}`, `{"tool_name":"Task","tool_input":{"prompt":"git push"}}`,
		`{"toolName":"view","toolArgs":"{\"path\":\"x\"}"}`, `{"tool_name":"mcp__x__y","tool_input":null}`, "\xef\xbb\xbf" + `{"tool_name":"Glob","tool_input":{}}`,
	} {
		for _, f := range guard.Formats()[2:] {
			r, err := guard.Decode(f, strings.NewReader(in))
			if err != nil {
				t.Errorf("%s: %s: %v", f, in, err)
				continue
			}
			reply, err := guard.Encode(f, shelltext.CheckRequest(t.Context(), r, guard.Context{Dir: "/x"}))
			if err != nil || reply.Code != 0 || string(reply.Stdout) != passed(f)+"\n" || len(reply.Stderr) != 0 {
				t.Errorf("%s: %s: %d %q %q %v", f, in, reply.Code, reply.Stdout, reply.Stderr, err)
			}
		}
	}
}
