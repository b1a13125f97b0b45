package shelltext_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
)

func TestHookFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range guard.Formats()[2:] {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("testdata/hooks/" + string(f) + ".json")
			if err != nil {
				t.Fatal(err)
			}
			r, err := guard.Decode(f, strings.NewReader(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			if r.Command != `git commit -m "wip"` || r.Dir != "/home/u/project" {
				t.Fatalf("decoded %+v", r)
			}
			line := shelltext.CheckRequest(t.Context(), r, guard.Context{})
			if line.Operation != "commit" || !line.Denied() {
				t.Fatalf("verdict %+v", line.Verdict)
			}
			reply, err := guard.Encode(f, line)
			if err != nil {
				t.Fatal(err)
			}
			checkDenial(t, f, reply)
			r.Command = "git status"
			reply, err = guard.Encode(f, shelltext.CheckRequest(t.Context(), r, guard.Context{}))
			// An allowance grants nothing: Claude's "allow" would pass over the user's own prompts.
			if err != nil || reply.Code != 0 || string(reply.Stdout) != passed(f)+"\n" || len(reply.Stderr) != 0 {
				t.Errorf("allowed: %d %q %v", reply.Code, reply.Stdout, err)
			}
		})
	}
}

// passed is the answer that lets a tool run.
func passed(f guard.Format) string {
	switch f {
	case guard.Gemini:
		return `{"decision":"allow"}`
	case guard.Cursor:
		return `{"permission":"allow"}`
	}
	return "{}"
}

// checkDenial holds an answer to what the agent's documentation asks for.
func checkDenial(t *testing.T, f guard.Format, reply guard.Reply) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(reply.Stdout, &got); err != nil {
		t.Fatal(err)
	}
	inner, _ := got["hookSpecificOutput"].(map[string]any)
	decision := map[guard.Format]any{
		guard.Claude: inner["permissionDecision"], guard.Codex: inner["permissionDecision"], guard.Gemini: got["decision"],
		guard.Cursor: got["permission"], guard.Copilot: got["permissionDecision"],
	}[f]
	if decision != "deny" {
		t.Errorf("decision %v in %s", decision, reply.Stdout)
	}
	want := 2
	if f == guard.Copilot || f == guard.Gemini { // they read the decision of a hook that succeeds
		want = 0
	}
	if reply.Code != want || !strings.Contains(string(reply.Stderr), "refused commit") {
		t.Errorf("exit %d, stderr %q", reply.Code, reply.Stderr)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		format guard.Format
		in     string
		want   guard.Request
	}{
		{"reading tool", guard.Claude, `{"tool_name":"Read","tool_input":{"file_path":"/x/.git/HEAD"},"cwd":"/x"}`, guard.Request{Tool: "Read", Dir: "/x"}},
		{"writing tool", guard.Claude, `{"tool_name":"Write","tool_input":{"file_path":"/x/.git/HEAD","content":"git push"},"cwd":"/x"}`, guard.Request{Tool: "Write", Dir: "/x", Writes: []string{"/x/.git/HEAD"}}},
		{"argument list", guard.Codex, `{"tool_name":"shell","tool_input":{"command":["bash","-lc","git push"],"workdir":"sub"},"cwd":"/x"}`, guard.Request{Tool: "shell", Dir: "/x/sub", Command: "'bash' '-lc' 'git push'"}},
		{"patch", guard.Codex, `{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a.go\n*** End Patch"},"cwd":"/x"}`, guard.Request{Tool: "apply_patch", Dir: "/x", Writes: []string{"a.go"}}},
		{"snake case", guard.Copilot, `{"hook_event_name":"PreToolUse","tool_name":"bash","tool_input":{"command":"ls"},"cwd":"/x"}`, guard.Request{Tool: "bash", Dir: "/x", Command: "ls"}},
		{"object arguments", guard.Copilot, `{"toolName":"bash","toolArgs":{"command":"ls"},"cwd":"/x"}`, guard.Request{Tool: "bash", Dir: "/x", Command: "ls"}},
		{"cursor without cwd", guard.Cursor, `{"command":"ls","cwd":"","workspace_roots":["/w"],"hook_event_name":"beforeShellExecution"}`, guard.Request{Tool: "beforeShellExecution", Dir: "/w", Command: "ls"}},
		{"cursor tool", guard.Cursor, `{"hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":"ls","working_directory":"/w"}}`, guard.Request{Tool: "Shell", Dir: "/w", Command: "ls"}},
		{"gemini directory", guard.Gemini, `{"tool_name":"run_shell_command","tool_input":{"command":"ls","dir_path":"src"},"cwd":"/x"}`, guard.Request{Tool: "run_shell_command", Dir: "/x/src", Command: "ls"}},
		{"typed into a shell", guard.Codex, `{"tool_name":"write_stdin","tool_input":{"session_id":1,"chars":"git push\n"},"cwd":"/x"}`, guard.Request{Tool: "write_stdin", Dir: "/x", Command: "git push\n"}},
		{"arguments that are a line", guard.Copilot, `{"toolName":"bash","toolArgs":"git push","cwd":"/x"}`, guard.Request{Tool: "bash", Dir: "/x", Command: "git push"}},
		{"told afterwards", guard.Claude, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"git push"},"cwd":"/x"}`, guard.Request{Tool: "Bash", Dir: "/x", Command: "git push", After: true}},
		{"no tool", guard.Gemini, `{"hook_event_name":"SessionStart","cwd":"/x"}`, guard.Request{Dir: "/x", After: true}},
		{"text", guard.Text, "git push\n", guard.Request{Command: "git push\n"}},
	}
	for _, tt := range tests {
		got, err := guard.Decode(tt.format, strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestUnreadableRequestIsRefused(t *testing.T) {
	t.Parallel()
	for _, f := range guard.Formats()[2:] {
		for _, in := range []string{"", "git push", "[]", "{}", "null", `{"tool_name":1}`, `{"tool_name":"Bash","tool_input":{"command":5}}`, `{"tool_name":"Bash"`} {
			_, err := guard.Decode(f, strings.NewReader(in))
			if !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("%s %q: %v", f, in, err)
				continue
			}
			reply, rerr := guard.Refuse(f, err)
			if rerr != nil || !strings.Contains(string(reply.Stdout), "deny") || len(reply.Stderr) == 0 {
				t.Errorf("%s: %+v %v", f, reply, rerr)
			}
		}
	}
}

func TestEventsThatAskForNothing(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"PostToolUse", "SessionStart", "Stop", "AfterTool", "afterShellExecution", "UserPromptSubmit", "PreCompact"} {
		for _, f := range guard.Formats()[2:] {
			in := `{"hook_event_name":"` + event + `"}`
			if strings.HasPrefix(event, "Post") || strings.HasPrefix(strings.ToLower(event), "after") {
				in = `{"hook_event_name":"` + event + `","tool_name":"Bash","tool_input":{"command":"git push"}}`
			}
			r, err := guard.Decode(f, strings.NewReader(in))
			if err != nil {
				t.Errorf("%s %s: %v", f, event, err)
				continue
			}
			if line := shelltext.CheckRequest(t.Context(), r, guard.Context{}); line.Denied() {
				t.Errorf("%s %s: %+v", f, event, line.Verdict)
			}
		}
	}
	for _, event := range []string{"", "PreToolUse", "BeforeTool", "PermissionRequest", "beforeShellExecution"} {
		r, err := guard.Decode(guard.Claude, strings.NewReader(`{"hook_event_name":"`+event+`","tool_name":"Bash","tool_input":{"command":"git push"}}`))
		if err != nil || !shelltext.CheckRequest(t.Context(), r, guard.Context{}).Denied() {
			t.Errorf("%s: let through (%v)", event, err)
		}
	}
}

func TestRequestWritesIntoGitDir(t *testing.T) {
	t.Parallel()
	line := shelltext.CheckRequest(t.Context(), guard.Request{Tool: "Write", Dir: "/x", Writes: []string{".git/hooks/pre-commit"}}, guard.Context{})
	if line.Operation != "gitdir.write" || !line.Denied() {
		t.Errorf("%+v", line.Verdict)
	}
	if line := shelltext.CheckRequest(t.Context(), guard.Request{Tool: "Write", Dir: "/x", Writes: []string{".github/x.yml"}}, guard.Context{}); line.Denied() {
		t.Errorf("%+v", line.Verdict)
	}
}

func TestTextAndJSON(t *testing.T) {
	t.Parallel()
	line := shelltext.Check(t.Context(), "git push", guard.Context{})
	reply, err := guard.Encode(guard.Text, line)
	if err != nil || reply.Code != 3 || !strings.HasPrefix(string(reply.Stdout), "deny push\n") {
		t.Errorf("%d %q %v", reply.Code, reply.Stdout, err)
	}
	reply, err = guard.Encode(guard.JSON, line)
	if err != nil || reply.Code != 3 || !strings.HasPrefix(string(reply.Stdout), `{"schema_version":1,"decision":"deny","operation":"push"`) {
		t.Errorf("%d %q %v", reply.Code, reply.Stdout, err)
	}
	if _, err := guard.ParseFormat("xml"); !errors.Is(err, superqode.ErrUsage) {
		t.Error(err)
	}
}
