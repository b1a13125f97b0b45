package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Command is one command that the configuration runs, and which file says so.
type Command struct {
	Key    string // setup[0].run or agents.NAME
	Line   string // as it would run
	Origin Origin
	Run    *SetupRun // nil for an agent's

	files []*SetupFile // what the setup writes before the command runs
}

// Commands returns the commands of setup, in their order, and of agents, by name.
func (c *Config) Commands() []Command { return append(c.SetupCommands(), c.AgentCommands()...) }

// SetupCommands returns the commands of setup.
func (c *Config) SetupCommands() []Command {
	var out []Command
	all := c.value("setup")
	files := c.setupFiles()
	for i, e := range c.Setup {
		if e.Run == nil {
			continue
		}
		out = append(out, Command{Key: e.Key, Line: e.Run.Line, Origin: all.entry(i), Run: e.Run, files: files})
	}
	return out
}

func (c *Config) setupFiles() []*SetupFile {
	var files []*SetupFile
	for _, e := range c.Setup {
		if e.File != nil {
			files = append(files, e.File)
		}
	}
	return files
}

// Writes names what the setup writes before it runs the command.
func (c Command) Writes() []string {
	var out []string
	for _, f := range c.files {
		out = append(out, f.Target.String())
	}
	return out
}

// AgentCommands returns the commands of agents.
func (c *Config) AgentCommands() []Command {
	var out []Command
	for id, line := range c.Agents {
		key := "agents." + id.String()
		out = append(out, Command{Key: key, Line: line, Origin: c.value(key).Origin, files: c.setupFiles()})
	}
	slices.SortFunc(out, func(a, b Command) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func (c *Config) value(key string) Value {
	if i := slices.IndexFunc(c.values, func(v Value) bool { return v.Key == key }); i >= 0 {
		return c.values[i]
	}
	return Value{Key: key, Origin: Origin{Layer: LayerDefault}}
}

// Fields returns everything that defines the command, for a hash: one text for
// each field. It includes the files that the setup writes, since a command may
// run them.
func (c Command) Fields() []string {
	var out []string
	for _, f := range c.files {
		out = append(out, "file", f.Target.String(), fmt.Sprintf("%o", f.Mode), f.Content, f.From)
	}
	if c.Run == nil {
		return append(out, "agent", c.Key, c.Line)
	}
	r := c.Run
	out = append(out, "run", r.Command, fmt.Sprint(r.Shell), fmt.Sprint(len(r.Args)))
	out = append(out, r.Args...)
	out = append(out, r.Dir, fmt.Sprint(len(r.Env)))
	for _, k := range slices.Sorted(maps.Keys(r.Env)) {
		out = append(out, k, r.Env[k])
	}
	return out
}

// Words returns the parts of the command that may name files: its words, those
// of a line for sh as sh would split the simple ones, the values of its
// environment, and where the files that the setup writes come from.
func (c Command) Words() []string {
	var out []string
	for _, f := range c.files {
		if f.From != "" {
			out = append(out, f.From)
		}
	}
	if c.Run == nil {
		return append(out, splitLine(c.Line)...)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Run.Env)) {
		out = append(out, c.Run.Env[k])
	}
	out = append(out, splitLine(c.Run.Command)...)
	for _, a := range c.Run.Args { // sh -c 'a b' has words of its own
		out = append(append(out, a), splitLine(a)...)
	}
	return out
}

// splitLine splits a line wherever a word may end. It does not find a file that
// is named in a way that only a shell understands.
func splitLine(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()$`\"'{}=,", r) })
	words = append(words, quotedWords(line)...)
	if line != "" && !slices.Contains(words, line) {
		words = append(words, line)
	}
	return words
}

// quotedWords returns the words of a line that hold quotes or backslashes, as sh
// reads them: "my script.sh" is one file.
func quotedWords(line string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	quoted, escaped := false, false
	end := func() {
		if quoted {
			out = append(out, word.String())
		}
		word.Reset()
		quoted = false
	}
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(r)
		case r == '\\' && quote != '\'':
			escaped, quoted = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, quoted = r, true
		case strings.ContainsRune(" \t\n;|&<>()", r):
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return out
}

// IsScript guesses whether a file is run rather than read: by its permission,
// its first line or its name.
func IsScript(path string, st os.FileInfo) bool {
	if st.Mode().Perm()&0o111 != 0 {
		return true
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1", ".mk", ".awk", ".sed":
		return true
	}
	switch strings.ToLower(filepath.Base(path)) {
	case "makefile", "gnumakefile", "justfile", "taskfile.yml", "rakefile", "package.json":
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	first := make([]byte, 2)
	n, _ := io.ReadFull(f, first) // an empty file is not a script
	return n == 2 && string(first) == "#!"
}
