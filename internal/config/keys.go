package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/outputs"
)

// kind is the type of one key's value.
type kind uint8

const (
	section  kind = iota + 1 // a map whose keys are in the table, merged key by key
	textKind                 // string
	integer                  // int64
	boolean                  // bool
	duration                 // string that text.ParseDuration accepts
	list                     // []any of item
	object                   // map[string]any with the keys of fields, one value
	dict                     // map[string]any with free keys and values of item, merged by key
)

// field is one row of the table. Sections and objects have fields, lists and
// dicts an item; the other members restrict and describe the value.
type field struct {
	name     string
	kind     kind
	doc      string // one sentence for the schema and the init text
	example  string // lines for the init text
	def      any
	fields   []field
	item     *field
	choices  []string
	min, max int64 // of an integer; max 0 means none
	check    func(string) error
	flag     string                                  // the command line flag that sets it, if there is one
	resolve  func(dir, s string) string              // of a text: what it means in a file in dir
	finish   func(dir string, object map[string]any) // of an object: the same for all of it
	required bool
	oneOf    []string // of these fields an object has exactly one
}

// table returns the root of all keys.
func table() *field {
	return &field{kind: section, fields: []field{
		{name: "workspace", kind: section, doc: "How a session's workspace is made and how long it stays.",
			fields: workspaceFields()},
		{name: "guard", kind: section, doc: "Additions to the guard's rules.", fields: guardFields()},
		{name: "inputs", kind: list, def: []any{}, item: inputItem(), flag: "--input", example: "- {from: fixtures/data.json, to: data/, read_only: true}\n- {from: \"artifact://baseline@2\", to: baseline.json, optional: true}", doc: "Files and folders that are copied or linked into the workspace before anything else."},
		{name: "setup", kind: list, def: []any{}, item: setupItem(), flag: "--bootstrap",
			example: "- file: {target: .env.test, from: .env.example, mode: \"0600\"}\n- run: {command: npm ci, timeout: 5m, fingerprint_inputs: [package-lock.json], observed: [node_modules]}", doc: "Files to write and commands to run before the program: files first, then commands, each in order."},
		{name: "agents", kind: dict, def: map[string]any{}, item: &field{kind: textKind, check: notEmpty}, check: agentName, example: "reviewer: codex exec 'review the last commit'", doc: "Name and shell command of each agent, for `run --agents`."},
		{name: "claims", kind: textKind, def: "advisory", choices: []string{"advisory", "enforced"}, doc: "What claims on lines do: advisory keeps agents out of what others claimed, enforced also out of what they did not claim themselves."},
		{name: "limits", kind: section, doc: "Limits of each program and everything that it starts.",
			fields: limitFields()},
		{name: "artifacts", kind: section, doc: "What is kept of a session.", fields: []field{
			{name: "outputs", kind: list, def: []any{}, item: pattern(), flag: "--output",
				doc: "Patterns of files in the workspace to keep as artifacts."},
			{name: "max_files", kind: integer, def: int64(outputs.DefaultMaxFiles), min: 1, max: 1_000_000, flag: "--max-files", doc: "How many of these files to keep at most."},
			{name: "max_file_bytes", kind: textKind, def: "4M", check: size, flag: "--max-file-bytes", doc: "The size of the largest of these files to keep."},
			{name: "max_total_bytes", kind: textKind, def: "64M", check: size, flag: "--max-total-bytes", doc: "The size of all these files together, at most."},
			{name: "keep_sessions", kind: integer, def: int64(50), max: 1_000_000,
				doc: "artifacts prune keeps the artifacts of this many sessions."},
		}},
	}}
}

func workspaceFields() []field {
	var modes []string
	for _, m := range superqode.Modes() {
		modes = append(modes, string(m))
	}
	return []field{
		{name: "default_mode", kind: textKind, def: "auto", choices: modes, flag: "--mode",
			doc: "The mode of a session without --mode."},
		{name: "template", kind: textKind, def: "", check: noNUL, resolve: resolveTemplate, flag: "--template",
			doc: "The folder that a session without --mode and --from starts from a copy of, relative to this configuration file; ~/ is the home folder."},
		{name: "case", kind: textKind, def: "", check: noNUL, flag: "--case", doc: "The case that sessions belong to (SUPERQODE_CASE_ID)."},
		{name: "cwd", kind: textKind, def: "", check: emptyOr(workspaceFolder), flag: "--cwd",
			doc: "The folder of the workspace in which programs start."},
		{name: "preserve_on_error", kind: boolean, def: true, flag: "--keep",
			doc: "Keep the workspace when the session's program fails."},
		{name: "cleanup_after_hours", kind: integer, def: int64(24), max: 24 * 366, flag: "--older-than",
			doc: "workspace cleanup removes sessions, records and salvages that nobody used for this many hours; the end of a session does so too, for 50 ms."},
		{name: "max_size_mb", kind: integer, def: int64(1000), min: 1, max: 1 << 30,
			doc: "Refuse a copy of the origin or of a template above this size in MiB; once you set it, a worktree too, and end a program that writes more than this."},
		{name: "exclude_patterns", kind: list, def: texts("node_modules/**", ".git/**", "*.pyc", "venv/**", ".venv/**"),
			item: pattern(), doc: "Files that a snapshot copy leaves out; in snapshot mode only."},
		{name: "include", kind: list, def: texts(".env"), item: &field{kind: textKind, check: ignorePattern}, flag: "--include", doc: "Ignored files that a worktree session brings along, in gitignore syntax, beside .worktreeinclude."},
		{name: "watcher", kind: section, doc: "How changes are watched while a session runs.", fields: []field{
			{name: "enabled", kind: boolean, def: true, doc: "Watch for changes."},
			{name: "debounce_ms", kind: integer, def: int64(100), max: 60_000,
				doc: "Report a path when it has been quiet for this many milliseconds."},
			{name: "ignore_patterns", kind: list, def: texts("node_modules/**", ".git/**", "*.pyc", "__pycache__/**"),
				item: pattern(), doc: "Files not to watch."},
		}},
	}
}

func guardFields() []field {
	rule := &field{kind: textKind, check: notEmpty}
	return []field{
		{name: "enforce", kind: textKind, def: "auto", choices: []string{"auto", "required", "off"}, flag: "--enforce",
			doc: "The kernel layer: auto (if the machine supports it), required, or off."},
		{name: "policy", kind: textKind, def: "qe", choices: []string{"qe", "contained", "destructive"}, flag: "--policy",
			doc: "What the guard refuses: qe (all that changes what is the user's), contained (what leaves the session's own git directory), or destructive (for agents' hooks where there is no session)."},
		{name: "allow", kind: list, def: []any{}, item: rule, doc: "Git operations to allow."},
		{name: "deny", kind: list, def: []any{}, item: rule,
			doc: "Git operations to refuse besides the built-in ones."},
	}
}

func pattern() *field { return &field{kind: textKind, check: globPattern} }

func texts(s ...string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}

func notEmpty(s string) error {
	if s == "" || strings.ContainsRune(s, 0) {
		return fmt.Errorf("%q is empty or holds a NUL byte", s)
	}
	return nil
}

func globPattern(s string) error {
	if s == "" || !doublestar.ValidatePattern(s) {
		return fmt.Errorf("%q is not a pattern", s)
	}
	return nil
}

func ignorePattern(s string) error {
	if strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\n\x00") {
		return fmt.Errorf("%q is not a gitignore pattern", s)
	}
	return nil
}

func agentName(s string) error {
	_, err := superqode.ParseAgentID(s)
	return err
}

// child returns the field named name, or nil.
func (f *field) child(name string) *field {
	i := slices.IndexFunc(f.fields, func(c field) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &f.fields[i]
}

// leaves calls yield for every field that holds a value of its own, with its
// full key, in the order of the table.
func (f *field) leaves(prefix string, yield func(key string, f *field)) {
	for i := range f.fields {
		c := &f.fields[i]
		if c.kind == section {
			c.leaves(prefix+c.name+".", yield)
		} else {
			yield(prefix+c.name, c)
		}
	}
}
