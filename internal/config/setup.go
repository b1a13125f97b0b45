package config

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// DefaultSetupTimeout is how long a setup command may take that names no time.
const DefaultSetupTimeout = 120 * time.Second

// SetupEntry is one file to write or one command to run before the program;
// exactly one of the two is set.
type SetupEntry struct {
	Key  string // its place: setup[0].run, or the flag
	File *SetupFile
	Run  *SetupRun
}

// SetupFile is a file to write: Content, or a copy of From, which is absolute
// or begins with ~/.
type SetupFile struct {
	Target  superqode.RelPath
	Content string
	From    string
	Mode    uint32 // permission bits, 0 when not set
}

// SetupRun is a command to run. Command and Args that looked like paths (./x or
// ../x) are absolute: they were resolved from the file that holds them.
type SetupRun struct {
	Command           string
	Args              []string
	Shell             bool   // Command is a line for sh, and Args is empty
	Line              string // command and arguments as one line
	Env               map[string]string
	Dir               string // in the workspace, "" for its root
	Timeout           time.Duration
	Marker            string   // in the workspace, "" for none
	Observed          []string // doublestar patterns in the workspace
	FingerprintInputs []string // the same; absolute ones are outside of it
	Salt              string
	Optional          bool
}

// Bootstrap returns the entry of the n-th (from 0) --bootstrap.
func Bootstrap(line string, n int) (SetupEntry, error) {
	key := "--bootstrap"
	if n > 0 {
		key += fmt.Sprintf(" (number %d)", n+1)
	}
	if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
		return SetupEntry{}, superqode.Errorf(superqode.ErrUsage, "--bootstrap: %q is not a command", line)
	}
	return SetupEntry{Key: key, Run: &SetupRun{Command: line, Line: line, Shell: true, Timeout: DefaultSetupTimeout}}, nil
}

func setupItem() *field {
	return &field{kind: object, oneOf: []string{"file", "run"}, fields: []field{
		{name: "file", kind: object, oneOf: []string{"content", "from"}, doc: "A file to write.", fields: []field{
			{name: "target", kind: textKind, required: true, check: workspacePath, doc: "Where in the workspace."},
			{name: "content", kind: textKind, doc: "Its contents."},
			{name: "from", kind: textKind, check: notEmpty, resolve: resolveHost,
				doc: "A file to copy, relative to this configuration file; ~/ is the home folder."},
			{name: "mode", kind: textKind, check: octal,
				doc: "Permission bits in octal, for example \"0600\"; by default 0644, or those of from."},
		}},
		{name: "run", kind: object, finish: finishRun, doc: "A command to run.", fields: []field{
			{name: "command", kind: textKind, required: true, check: notEmpty, doc: "The program; ./x and ../x are relative to this configuration file. Without args it may be a whole line for sh."},
			{name: "args", kind: list, item: &field{kind: textKind, check: noNUL, resolve: resolveDotted},
				doc: "Its arguments; ./x and ../x are relative to this configuration file."},
			{name: "env", kind: dict, item: &field{kind: textKind, check: noNUL}, check: CheckVariable,
				doc: "Environment variables."},
			{name: "cwd", kind: textKind, check: workspaceFolder, doc: "Where in the workspace to run it."},
			{name: "timeout", kind: duration, doc: "When to give up, for example 90s; by default 120s."},
			{name: "marker", kind: textKind, check: workspacePath, doc: "A file in the workspace that marks the command as done: when it is gone the command runs again. superqode creates it if the command did not."},
			{name: "observed", kind: list, item: pattern(),
				doc: "What the command creates: when any of it is gone or has changed the command runs again."},
			{name: "fingerprint_inputs", kind: list, item: &field{kind: textKind, check: globPattern, resolve: resolveDotted}, doc: "What the command reads in the workspace: when any of it changes the command runs again. ./x and ../x are relative to this configuration file."},
			{name: "salt", kind: textKind, doc: "Change this to make the command run again."},
			{name: "optional", kind: boolean, doc: "A failure is only a warning."},
		}},
	}}
}

// workspacePath checks the place of something that setup puts into the
// workspace. It refuses git's own folder: what is there runs, or says what
// runs, whenever anybody calls git.
func workspacePath(s string) error {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return fmt.Errorf("path %q leads out; it must be a path inside the workspace", s)
		}
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, ".superqode") {
			return fmt.Errorf("path %q leads into %s, where setup may not write", s, part)
		}
	}
	if strings.HasPrefix(s, "/") {
		return fmt.Errorf("path %q is absolute; it must be a path inside the workspace", s)
	}
	_, err := superqode.ParseRelPath(path.Clean(s))
	if s == "" || err != nil {
		return fmt.Errorf("%q is not a path inside the workspace", s)
	}
	return nil
}

// workspaceFolder is workspacePath for a folder to work in, which may be the
// workspace itself.
func workspaceFolder(s string) error {
	if s != "" && path.Clean(s) == "." {
		return nil
	}
	return workspacePath(s)
}

func noNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("%q holds a NUL byte", s)
	}
	return nil
}

func octal(s string) error {
	if m, err := parseOctal(s); err != nil || m == 0 || m > 0o777 {
		return fmt.Errorf("%q is not a set of permission bits (an octal number up to 0777)", s)
	}
	return nil
}

func parseOctal(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
}

// resolveHost makes a path of this machine absolute.
func resolveHost(dir, s string) string {
	if strings.HasPrefix(s, "/") || s == "~" || strings.HasPrefix(s, "~/") {
		return s
	}
	return filepath.Join(dir, s)
}

// resolveTemplate is resolveHost for a path that need not be given.
func resolveTemplate(dir, s string) string {
	if s == "" {
		return s
	}
	return resolveHost(dir, s)
}

func emptyOr(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

// resolveDotted makes ./x and ../x absolute and leaves everything else.
func resolveDotted(dir, s string) string {
	if s == "." || s == ".." || !isDotted(s) {
		return s
	}
	return filepath.Join(dir, s)
}

func isDotted(s string) bool { return strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") }

// finishRun resolves the command of a run entry. Of a line for sh it changes
// only the first word.
func finishRun(dir string, object map[string]any) {
	command := str(object, "command")
	if !isDotted(command) {
		return
	}
	if _, args := object["args"]; args {
		object["command"] = filepath.Join(dir, command)
		return
	}
	end := strings.IndexAny(command, " \t\n;|&<>()$`\"'\\*?[#~")
	if end < 0 {
		end = len(command)
	}
	object["command"] = text.QuotePOSIX(filepath.Join(dir, command[:end])) + command[end:]
}

// isLine reports whether a command is a line for sh rather than a program's name.
func isLine(command string) bool { return strings.ContainsAny(command, " \t\n;|&<>()$`\"'\\*?[#~=%") }

func lineOf(command string, args []string) string {
	line := command
	for _, a := range args {
		line += " " + text.QuotePOSIX(a)
	}
	return line
}

func setupEntry(m map[string]any, n int) SetupEntry {
	if f, ok := m["file"].(map[string]any); ok {
		out := &SetupFile{Content: str(f, "content"), From: str(f, "from"), Target: cleanPath(str(f, "target"))}
		if mode, err := parseOctal(str(f, "mode")); err == nil {
			out.Mode = uint32(mode)
		}
		return SetupEntry{Key: fmt.Sprintf("setup[%d].file", n), File: out}
	}
	r, _ := m["run"].(map[string]any)
	out := &SetupRun{
		Command: str(r, "command"), Args: stringsOf(r["args"]), Dir: path.Clean(str(r, "cwd")),
		Timeout: DefaultSetupTimeout,
		Marker:  cleanPath(str(r, "marker")).String(), Observed: stringsOf(r["observed"]),
		FingerprintInputs: stringsOf(r["fingerprint_inputs"]), Salt: str(r, "salt"),
	}
	if out.Dir == "." {
		out.Dir = ""
	}
	_, args := r["args"]
	out.Shell, out.Line = !args && isLine(out.Command), lineOf(out.Command, out.Args)
	out.Optional, _ = r["optional"].(bool)
	if d, err := text.ParseDuration(str(r, "timeout")); err == nil {
		out.Timeout = d
	}
	if env, ok := r["env"].(map[string]any); ok {
		out.Env = map[string]string{}
		for k, v := range env {
			out.Env[k], _ = v.(string)
		}
	}
	return SetupEntry{Key: fmt.Sprintf("setup[%d].run", n), Run: out}
}

// checkTargets refuses two inputs or files with one target: each setup would apply
// both again, one over the other.
func (c *Config) checkTargets() error {
	type place struct {
		key string
		at  Origin
	}
	seen := map[superqode.RelPath]place{}
	one := func(target superqode.RelPath, now place) error {
		first, again := seen[target]
		seen[target] = now
		if !again || target.IsZero() {
			return nil
		}
		return &Error{Where: now.at.Name, Line: now.at.Line, Key: now.key,
			Msg: fmt.Sprintf("%s is also the target of %s (%s)", text.Quote(target.String()), first.key, first.at)}
	}
	inputs, setup := c.value("inputs"), c.value("setup")
	for i, in := range c.Inputs {
		if err := one(in.To, place{in.Key, inputs.entry(i)}); err != nil {
			return err
		}
	}
	for i, e := range c.Setup {
		if e.File == nil {
			continue
		}
		if err := one(e.File.Target, place{e.Key, setup.entry(i)}); err != nil {
			return err
		}
	}
	return nil
}

// cleanPath makes the path of a text that workspacePath accepted; "" stays the
// zero value.
func cleanPath(s string) superqode.RelPath {
	p, _ := superqode.ParseRelPath(path.Clean(s)) // checked by the table
	return p
}
