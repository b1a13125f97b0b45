package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/outputs"
)

// layers writes the given files below a fresh folder and returns Sources that
// read them: "user", "origin", "local" and "file".
func layers(t *testing.T, files map[string]string) config.Sources {
	t.Helper()
	root := t.TempDir()
	src := config.Sources{OriginDir: filepath.Join(root, "origin"), Env: []string{"HOME=" + filepath.Join(root, "home")}}
	paths := map[string]string{
		"user":   filepath.Join(root, "home", ".config", "superqode", "config.yaml"),
		"origin": filepath.Join(src.OriginDir, "superqode.yaml"),
		"local":  filepath.Join(src.OriginDir, "superqode.local.yaml"),
		"file":   filepath.Join(root, "elsewhere", "my.yaml"),
	}
	for name, contents := range files {
		p := paths[name]
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := files["file"]; ok {
		src.File = paths["file"]
	}
	return src
}

func load(t *testing.T, src config.Sources) *config.Config {
	t.Helper()
	c, err := config.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// origins returns where each key that is not a default came from, without the
// folders that differ from run to run.
func origins(c *config.Config) map[string]string {
	out := map[string]string{}
	for _, v := range c.Values() {
		if v.Origin.Layer != config.LayerDefault {
			out[v.Key] = string(v.Origin.Layer) + " " + filepath.Base(v.Origin.String())
		}
	}
	return out
}

func TestDefault(t *testing.T) {
	t.Parallel()
	want := config.Workspace{
		DefaultMode: superqode.ModeAuto, PreserveOnError: true, CleanupAfter: 24 * time.Hour, MaxSize: 1000 << 20,
		ExcludePatterns: []string{"node_modules/**", ".git/**", "*.pyc", "venv/**", ".venv/**"}, Include: []string{".env"},
		Watcher: config.Watcher{Enabled: true, Debounce: 100 * time.Millisecond, IgnorePatterns: []string{"node_modules/**", ".git/**", "*.pyc", "__pycache__/**"}},
	}
	for name, c := range map[string]*config.Config{"nothing there": load(t, layers(t, nil)), "no HOME": load(t, config.Sources{})} {
		if d := cmp.Diff(want, c.Workspace); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(config.Artifacts{Outputs: []string{}, Limits: outputs.Limits{MaxFiles: 100, MaxFileBytes: 4 << 20, MaxTotalBytes: 64 << 20}, KeepSessions: 50}, c.Artifacts); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if c.Guard.Enforce != config.EnforceAuto || len(c.Setup)+len(c.Agents)+len(origins(c)) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestLayers holds that the strongest layer wins, key by key, and is named.
func TestLayers(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{
		"user":   "workspace:\n  default_mode: directory\n  max_size_mb: 1\n  cleanup_after_hours: 1\n  include: [u]\n  preserve_on_error: false\nagents: {a: user, b: user}\n",
		"origin": "workspace:\n  default_mode: snapshot\n  max_size_mb: 2\n  cleanup_after_hours: 2\n  include: [o, p]\nagents: {b: origin, c: origin}\n",
		"local":  "# mine\nworkspace:\n  default_mode: git_snapshot\n  max_size_mb: 3\n  cleanup_after_hours: 3\n",
	})
	src.Env = append(src.Env, "SUPERQODE_WORKSPACE_DEFAULT_MODE=shared", "SUPERQODE_WORKSPACE_MAX_SIZE_MB=4", "SUPERQODE_SESSION_ID=qe-x", "SUPERQODE_WORKSPACE=/w", "SUPERQODE_GUARD_ENFORCE=")
	src.Flags = map[string][]string{"workspace.default_mode": {"worktree"}}
	c := load(t, src)
	want := map[string]string{
		"workspace.default_mode":        "flag --mode",
		"workspace.max_size_mb":         "environment SUPERQODE_WORKSPACE_MAX_SIZE_MB",
		"workspace.cleanup_after_hours": "superqode.local.yaml superqode.local.yaml:5",
		"workspace.include":             "superqode.yaml superqode.yaml:5",
		"workspace.preserve_on_error":   "user config.yaml:6",
		"agents.a":                      "user config.yaml:7",
		"agents.b":                      "superqode.yaml superqode.yaml:6",
		"agents.c":                      "superqode.yaml superqode.yaml:6",
	}
	if d := cmp.Diff(want, origins(c)); d != "" {
		t.Error(d)
	}
	w := c.Workspace
	if w.DefaultMode != superqode.ModeWorktree || w.MaxSize != 4<<20 || w.CleanupAfter != 3*time.Hour || w.PreserveOnError || cmp.Diff([]string{"o", "p"}, w.Include) != "" {
		t.Errorf("%+v", w)
	}
	agents := map[string]string{}
	for id, cmd := range c.Agents {
		agents[id.String()] = cmd
	}
	if d := cmp.Diff(map[string]string{"a": "user", "b": "origin", "c": "origin"}, agents); d != "" {
		t.Error(d)
	}
}

// TestFileReplacesTheOriginsFiles holds what --config means.
func TestFileReplacesTheOriginsFiles(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{"user": "artifacts: {keep_sessions: 7}", "origin": "broken: [", "local": "broken: [", "file": "guard: {enforce: off}"})
	if d := cmp.Diff(map[string]string{"guard.enforce": "--config my.yaml:1", "artifacts.keep_sessions": "user config.yaml:1"}, origins(load(t, src))); d != "" {
		t.Error(d)
	}
	src.File += ".absent"
	if _, err := config.Load(t.Context(), src); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

func TestXDG(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=/h"}, "/h/.config/superqode/config.yaml"},
		{[]string{"HOME=/h", "XDG_CONFIG_HOME=/x"}, "/x/superqode/config.yaml"},
		{[]string{"HOME=/h", "XDG_CONFIG_HOME=rel"}, "/h/.config/superqode/config.yaml"},
		{[]string{"XDG_CONFIG_HOME=/x"}, "/x/superqode/config.yaml"},
		{[]string{"HOME=rel"}, ""},
		{nil, ""},
	} {
		got := ""
		for _, p := range config.Paths(config.Sources{Env: tt.env}) {
			got = p.Path
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.env, got, tt.want)
		}
	}
}

// TestSetup holds that entries become typed and that relative paths start from
// the file that holds them.
func TestSetup(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{"origin": `
setup:
  - file: {target: .env, content: "A=1\n", mode: 0600}
  - file: {target: conf/x, from: fixtures/x}
  - run:
      command: ./tools/prepare
      args: [../y, plain, -o./z]
      env: {PORT: 8080, DEBUG: true}
      cwd: sub
      timeout: 2m
      optional: true
      observed: ["node_modules/**"]
  - run: {command: npm}
  - run: {command: ./tools/prepare --all ../z > log}
  - run: {command: my tool, args: []}
`})
	dir := src.OriginDir
	target := func(s string) superqode.RelPath {
		p, err := superqode.ParseRelPath(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	command, arg := filepath.Join(dir, "tools/prepare"), filepath.Join(filepath.Dir(dir), "y")
	want := []config.SetupEntry{
		{Key: "setup[0].file", File: &config.SetupFile{Target: target(".env"), Content: "A=1\n", Mode: 0o600}},
		{Key: "setup[1].file", File: &config.SetupFile{Target: target("conf/x"), From: filepath.Join(dir, "fixtures/x")}},
		{Key: "setup[2].run", Run: &config.SetupRun{Command: command, Args: []string{arg, "plain", "-o./z"}, Line: command + " " + arg + " plain -o./z",
			Env: map[string]string{"PORT": "8080", "DEBUG": "true"}, Dir: "sub", Timeout: 2 * time.Minute, Optional: true, Observed: []string{"node_modules/**"}}},
		{Key: "setup[3].run", Run: &config.SetupRun{Command: "npm", Line: "npm", Timeout: 2 * time.Minute}},
		{Key: "setup[4].run", Run: &config.SetupRun{Command: command + " --all ../z > log", Line: command + " --all ../z > log", Shell: true, Timeout: 2 * time.Minute}},
		{Key: "setup[5].run", Run: &config.SetupRun{Command: "my tool", Args: []string{}, Line: "my tool", Timeout: 2 * time.Minute}},
	}
	if d := cmp.Diff(want, load(t, src).Setup, cmp.Comparer(func(a, b superqode.RelPath) bool { return a == b })); d != "" {
		t.Error(d)
	}
}

// TestInputs holds what each way of naming a source means.
func TestInputs(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{"origin": `
inputs:
  - {from: fixtures/data.json, to: ./data/}
  - {from: /abs/x, mode: link, read_only: true, optional: true}
  - {from: ~/secret}
  - {from: "workspace://a/b", to: c}
  - {from: "artifact://report.json@3", to: r/x.json}
  - {from: "artifact://patch-001"}
`})
	c := load(t, src)
	var got []string
	for _, in := range c.Inputs {
		got = append(got, strings.Join([]string{in.Key, in.Path, in.Workspace, in.Artifact, strconv.Itoa(in.Version), in.To.String(), fmt.Sprint(in.Link, in.ReadOnly, in.Optional)}, "|"))
	}
	want := []string{
		"inputs[0]|" + src.OriginDir + "/fixtures/data.json|||0|data/data.json|false false false",
		"inputs[1]|/abs/x|||0|x|true true true",
		"inputs[2]|~/secret|||0|secret|false false false",
		"inputs[3]||a/b||0|c|false false false",
		"inputs[4]|||report.json|3|r/x.json|false false false",
		"inputs[5]|||patch-001|0|patch-001|false false false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseInput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"a/b", "/d/a/b||0|b|false false false"},
		{"../b:c", "/b||0|c|false false false"},
		{"/x:y/:ro,link", "/x||0|y/x|true true false"},
		{"artifact://n@2:t:optional", "|n|2|t|false false true"},
		{"artifact://n:t:copy,readonly", "|n|0|t|false true false"},
	} {
		in, err := config.ParseInput(tt.in, "/d")
		got := strings.Join([]string{in.Path, in.Artifact, strconv.Itoa(in.Version), in.To.String(), fmt.Sprint(in.Link, in.ReadOnly, in.Optional)}, "|")
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v", tt.in, got, err)
		}
	}
	for _, bad := range []string{"", "a:../b", "a:/b", "a:.git/hooks/x", "a:b:rw", "a:b:ro:x", "s3://bucket", "artifact://", "artifact://a@0", "artifact://a@x", "workspace://../a", "/", ".."} {
		if in, err := config.ParseInput(bad, "/d"); !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), "--input") {
			t.Errorf("%q: %+v, %v", bad, in, err)
		}
	}
}

// TestVariables holds that every key has a variable; lists of maps and agents are
// YAML in it.
func TestVariables(t *testing.T) {
	t.Parallel()
	src := layers(t, map[string]string{"origin": "agents: {a: origin, b: origin}\n"})
	src.Env = append(src.Env, "SUPERQODE_SETUP=[{run: {command: ./x}}]", "SUPERQODE_INPUTS=[{from: data}]", "SUPERQODE_AGENTS={b: mine}")
	c := load(t, src)
	if len(c.Setup) != 1 || c.Setup[0].Run.Command != filepath.Join(src.OriginDir, "x") || len(c.Inputs) != 1 || c.Inputs[0].Path != filepath.Join(src.OriginDir, "data") {
		t.Errorf("%+v, %+v", c.Setup, c.Inputs)
	}
	want := map[string]string{"setup": "environment SUPERQODE_SETUP", "inputs": "environment SUPERQODE_INPUTS", "agents.a": "superqode.yaml superqode.yaml:1", "agents.b": "environment SUPERQODE_AGENTS"}
	if d := cmp.Diff(want, origins(c)); d != "" {
		t.Error(d)
	}
	if commands := c.Commands(); len(commands) != 3 || commands[0].Origin.Layer != config.LayerEnv || commands[2].Line != "mine" {
		t.Errorf("%+v", commands)
	}
	for _, v := range load(t, config.Sources{}).Values() {
		name := "SUPERQODE_" + strings.ToUpper(strings.ReplaceAll(v.Key, ".", "_"))
		if _, err := config.Load(t.Context(), config.Sources{Env: []string{name + "={[\x00"}}); err == nil || !strings.Contains(err.Error(), name) {
			if _, isList := v.Value.([]any); !isList {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestCommasInBraces holds that a variable's list is split between patterns only.
func TestCommasInBraces(t *testing.T) {
	t.Parallel()
	c, err := config.Load(t.Context(), config.Sources{Env: []string{"SUPERQODE_ARTIFACTS_OUTPUTS=dist/*.{js,{css,map}},*.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"dist/*.{js,{css,map}}", "*.txt"}, c.Artifacts.Outputs); d != "" {
		t.Error(d)
	}
}

// TestCommandsSayWhere holds that each command knows the line of its own entry, in
// both ways of writing it.
func TestCommandsSayWhere(t *testing.T) {
	t.Parallel()
	c := load(t, layers(t, map[string]string{"origin": "setup:\n  - file: {target: f, content: x}\n  - run:\n      command: a\n  # b\n  - run: {command: b, timeout: 90}\n  -\n    run: {command: c}\n" +
		"agents:\n  one: x\n"}))
	var got []string
	for _, cmd := range c.Commands() {
		got = append(got, fmt.Sprintf("%s %s:%d", cmd.Key, filepath.Base(cmd.Origin.Name), cmd.Origin.Line))
	}
	if d := cmp.Diff([]string{"setup[1].run superqode.yaml:3", "setup[2].run superqode.yaml:6", "setup[3].run superqode.yaml:8", "agents.one superqode.yaml:10"}, got); d != "" {
		t.Error(d)
	}
	if d := c.Setup[2].Run.Timeout; d != 90*time.Second {
		t.Error(d)
	}
}

// TestWordsOfALine holds that a command's words include those that are quoted: a
// script whose path has a space in it is a file like any other.
func TestWordsOfALine(t *testing.T) {
	t.Parallel()
	c := load(t, layers(t, map[string]string{"origin": "setup:\n  - run: {command: \"sh 'a b.sh' c\\\\ d.sh \\\"x'y\\\"z; './e f'/g\"}\n  - run: {command: ./s.sh --all}\n"}))
	words := c.Commands()[0].Words()
	for _, want := range []string{"a b.sh", "c d.sh", "x'yz", "./e f/g", "sh"} {
		if !slices.Contains(words, want) {
			t.Errorf("%q is not among %q", want, words)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"workspace:\n  defalt_mode: auto\n", `:2:3: unknown key "workspace.defalt_mode" (the nearest known one is workspace.default_mode)`},
		{"default_mode: auto\n", `:1:1: unknown key "default_mode" (the nearest known one is workspace.default_mode)`},
		{"work_space: {}\n", `:1:1: unknown key "work_space" (the nearest known one is workspace)`},
		{"workspace:\n  watcher:\n    debounce: 1\n", `:3:5: unknown key "workspace.watcher.debounce" (the nearest known one is workspace.watcher.debounce_ms)`},
		{"setup:\n  - run: {comand: x}\n", `:2:11: unknown key "setup[0].run.comand" (the nearest known one is setup[].run.command)`},
		{"workspace:\n  default_mode: worktrees\n", `:2:17: workspace.default_mode: "worktrees" is not one of auto, overlay, worktree, snapshot, git_snapshot, directory, shared`},
		{"workspace: {default_mode: Auto}", `:1:27: workspace.default_mode: "Auto" is not one of`},
		{"workspace: {max_size_mb: 0}", `:1:26: workspace.max_size_mb: 0 is not between 1 and 1073741824`},
		{"workspace: {max_size_mb: 1.5}", `"1.5" is not a whole number`},
		{"workspace: {max_size_mb: \"7\"}", `text where a whole number is expected`},
		{"workspace: {max_size_mb: 99999999999999999999}", `is not a whole number`},
		{"workspace: {cleanup_after_hours: -1}", `-1 is not between 0 and 8784`},
		{"workspace: {preserve_on_error: yes}", `"yes" is neither true nor false`},
		{"workspace: {include: .env}", `workspace.include: text where a list is expected`},
		{"workspace: {include: [a, {b: c}]}", `workspace.include[1]: a map where text is expected`},
		{"workspace: {exclude_patterns: ['[a']}", `workspace.exclude_patterns[0]: "[a" is not a pattern`},
		{"workspace: [a]", `:1:12: workspace: a list where keys are expected`},
		{"- a", `a list where keys are expected`},
		{"just text", `text where keys are expected`},
		{"guard: {enforce: maybe}", `guard.enforce: "maybe" is not one of auto, required, off`},
		{"guard: {deny: ['']}", `guard.deny[0]: "" is empty`},
		{"agents: {'a b': x}", `agents: "a b" is not an agent name`},
		{"agents: {a: ''}", `agents.a: "" is empty`},
		{"setup: [{}]", `setup[0]: exactly one of file and run is needed`},
		{"setup: [{file: {target: a, content: b}, run: {command: c}}]", `setup[0]: exactly one of file and run is needed`},
		{"setup: [{file: {target: a, content: b, from: c}}]", `setup[0].file: exactly one of content and from is needed`},
		{"setup: [{file: {content: b}}]", `setup[0].file: target is missing`},
		{"setup: [{file: {target: ../a, content: b}}]", `setup[0].file.target: path "../a" leads out; it must be a path inside the workspace`},
		{"setup: [{file: {target: /a, content: b}}]", `path "/a" is absolute`},
		{"setup: [{file: {target: a, content: b, mode: 999}}]", `"999" is not a set of permission bits`},
		{"setup: [{run: {command: a, timeout: soon}}]", `setup[0].run.timeout: "soon" is not a duration`},
		{"setup: [{run: {command: a, timeout: -5s}}]", `is not a duration`},
		{"setup: [{run: {command: a, env: {A=B: c}}}]", `"A=B" is not the name of an environment variable`},
		{"setup: [{run: }]", `setup[0].run: nothing where keys are expected`},
		{"setup: [{file: {target: .git/hooks/pre-commit, content: b}}]", `setup[0].file.target: path ".git/hooks/pre-commit" leads into .git, where setup may not write`},
		{"setup: [{file: {target: a/../b, content: b}}]", `leads out`},
		{"setup: [{file: {target: ., content: b}}]", `is not a path inside the workspace`},
		{"setup: [{run: {command: a, marker: sub/.GIT/x}}]", `setup[0].run.marker: path "sub/.GIT/x" leads into .GIT`},
		{"setup: [{run: {command: a, cwd: ../b}}]", `setup[0].run.cwd: path "../b" leads out`},
		{"inputs: [{to: b}]", `inputs[0]: from is missing`},
		{"inputs: [{from: a, to: ../b}]", `inputs[0].to: path "../b" leads out`},
		{"inputs: [{from: a, to: /b}]", `inputs[0].to: path "/b" is absolute`},
		{"inputs: [{from: a, mode: move}]", `inputs[0].mode: "move" is not one of copy, link`},
		{"inputs: [{from: 'https://x/y'}]", `inputs[0].from: "https://x/y": inputs do not come from https://`},
		{"inputs: [{from: 'artifact://a@b'}]", `is not a version`},
		{"workspace: {include: [\"a\xffb\"]}", `:1:25: the byte 0xff is not text`},
		{"\x00", `:1:1: the byte 0x00 is not text`},
		{"artifacts: {outputs: [&x a]}", `an anchor, alias or tag, which are not supported`},
		{"workspace: {<<: {include: []}}", `merged and complex keys are not supported`},
		{"workspace:\n  include: []\n  include: []\n", `:3:3: mapping key "include" already defined`},
		{"workspace: {}\n---\nworkspace: {}\n", `a second document`},
		{"workspace: [", `:1:`},
		{"\tworkspace: x", `tab character`},
	} {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			src := layers(t, map[string]string{"origin": tt.in})
			_, err := config.Load(t.Context(), src)
			if !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error is %v, want %s", err, tt.want)
			}
			e, ok := errors.AsType[*config.Error](err)
			if !ok || e.Where != filepath.Join(src.OriginDir, "superqode.yaml") || e.Line < 1 || e.Column < 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %#v", e)
			}
		})
	}
}

// TestOneTarget holds that an error names both entries, each by its line.
func TestOneTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"setup:\n  - file: {target: a/b, content: x}\n  - run: {command: y}\n  - file: {target: ./a//b, from: z}\n": `:4: setup[2].file: a/b is also the target of setup[0].file (%s:2)`,
		"setup:\n- file: {target: b, content: x}\ninputs:\n- from: a\n- from: x/b\n":                                `:2: setup[0].file: b is also the target of inputs[1] (%s:5)`,
		"inputs: [{from: a},\n  {from: x/a}]":                                                                       `:2: inputs[1]: a is also the target of inputs[0] (%s:1)`,
	} {
		src := layers(t, map[string]string{"origin": in})
		file := filepath.Join(src.OriginDir, "superqode.yaml")
		_, err := config.Load(t.Context(), src)
		if !errors.Is(err, superqode.ErrUsage) || err.Error() != file+fmt.Sprintf(want, file) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	src := layers(t, map[string]string{"origin": "inputs: [{from: a, to: d/}, {from: b, to: d/}]\nsetup: [{file: {target: a, content: b}}]"})
	load(t, src)
	src.Env = []string{"SUPERQODE_INPUTS=[{from: a}]"}
	if _, err := config.Load(t.Context(), src); err == nil || !strings.Contains(err.Error(), ":2: setup[0].file: a is also the target of inputs[0] (SUPERQODE_INPUTS)") {
		t.Error(err)
	}
}

func TestRefusedOutsideOfFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env   string
		flags map[string][]string
		want  string
	}{
		{"SUPERQODE_WORKSPACE_DEFAULT_MODE=x", nil, `SUPERQODE_WORKSPACE_DEFAULT_MODE: "x" is not one of auto`},
		{"SUPERQODE_WORKSPACE_DEFALT_MODE=auto", nil, `SUPERQODE_WORKSPACE_DEFALT_MODE: unknown variable (the nearest known one is SUPERQODE_WORKSPACE_DEFAULT_MODE)`},
		{"SUPERQODE_WORKSPACE_MAX_SIZE_MB=big", nil, `"big" is not a whole number`},
		{"SUPERQODE_ARTIFACTS_OUTPUTS=a,[b", nil, `SUPERQODE_ARTIFACTS_OUTPUTS: "[b" is not a pattern`},
		{"SUPERQODE_ARTIFACTS_OUTPUTS=[a", nil, `SUPERQODE_ARTIFACTS_OUTPUTS: sequence end token`},
		{"SUPERQODE_SETUP=x", nil, `SUPERQODE_SETUP: setup: text where a list is expected`},
		{"SUPERQODE_AGENTS=x", nil, `SUPERQODE_AGENTS: agents: text where keys are expected`},
		{"", map[string][]string{"workspace.default_mode": {"x"}}, `--mode: "x" is not one of auto`},
		{"", map[string][]string{"workspace.mode": {"x"}}, `unknown key "workspace.mode" (the nearest known one is workspace.default_mode)`},
	} {
		_, err := config.Load(t.Context(), config.Sources{Env: []string{tt.env}, Flags: tt.flags})
		if !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: error is %v", tt.env, tt.flags, err)
		}
	}
}

func TestListsOutsideOfFiles(t *testing.T) {
	t.Parallel()
	for env, want := range map[string][]string{"a": {"a"}, "a,b c": {"a", "b c"}, "[]": {}, "['a,b', c]": {"a,b", "c"}} {
		c := load(t, config.Sources{Env: []string{"SUPERQODE_WORKSPACE_INCLUDE=" + env}})
		if d := cmp.Diff(want, c.Workspace.Include); d != "" {
			t.Errorf("%s: %s", env, d)
		}
	}
	c := load(t, config.Sources{Flags: map[string][]string{"workspace.include": {"a,b", "[c]"}}})
	if d := cmp.Diff([]string{"a,b", "[c]"}, c.Workspace.Include); d != "" {
		t.Error(d)
	}
}

func TestReadsRegularFilesOnly(t *testing.T) {
	t.Parallel()
	src := layers(t, nil)
	p := filepath.Join(src.OriginDir, "superqode.yaml")
	if err := os.MkdirAll(p, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(t.Context(), src); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("a folder: %v", err)
	}
	if err := os.Remove(p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(t.Context(), src); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("a huge file: %v", err)
	}
}

// FuzzLoad holds that any file gives a configuration or an *Error, never a
// panic, and that what was accepted keeps its promises.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", "workspace: {include: [a]}", config.Init(), "a: [", "setup:\n- run: {command: ./x, env: {A: 1}}", "agents: {a: b}", "? a\n: b", "a: &x *x", "!!map {}", "workspace:\n", "\xff", "- - -", "%YAML 1.2\n---\n"} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, s string) {
		p := filepath.Join(dir, "my.yaml")
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(t.Context(), config.Sources{File: p})
		if err != nil {
			if _, ok := errors.AsType[*config.Error](err); !ok {
				t.Errorf("error is %T %v", err, err)
			}
			return
		}
		if _, err := superqode.ParseMode(string(c.Workspace.DefaultMode)); err != nil {
			t.Error(err)
		}
		for _, e := range c.Setup {
			if (e.File == nil) == (e.Run == nil) || e.File != nil && e.File.Target.IsZero() || e.Run != nil && (e.Run.Command == "" || e.Run.Timeout <= 0) {
				t.Errorf("setup entry %+v", e)
			}
		}
	})
}
