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

// Command is one command that the configuration says to run, and who says so.
type Command struct {
	Key    string // setup[0].run or agents.NAME
	Line   string // as it would run
	Origin Origin
	Run    *SetupRun // nil for an agent's
}

// Commands returns the commands of setup, in their order, and of agents, by name.
func (c *Config) Commands() []Command { return append(c.SetupCommands(), c.AgentCommands()...) }

// SetupCommands returns the commands of setup.
func (c *Config) SetupCommands() []Command {
	var out []Command
	for _, e := range c.Setup {
		if e.Run != nil {
			out = append(out, Command{Key: e.Key, Line: e.Run.Line, Origin: c.origin("setup"), Run: e.Run})
		}
	}
	return out
}

// AgentCommands returns the commands of agents.
func (c *Config) AgentCommands() []Command {
	var out []Command
	lines := map[string]string{}
	for id, line := range c.Agents {
		lines[id.String()] = line
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		key := "agents." + name
		out = append(out, Command{Key: key, Line: lines[name], Origin: c.origin(key)})
	}
	return out
}

func (c *Config) origin(key string) Origin {
	for _, v := range c.values {
		if v.Key == key {
			return v.Origin
		}
	}
	return Origin{Layer: LayerDefault}
}

// Fields are everything that makes the command what it is, for a hash: each one
// stands for itself, whatever it holds.
func (c Command) Fields() []string {
	if c.Run == nil {
		return []string{"agent", c.Key, c.Line}
	}
	r := c.Run
	out := []string{"run", r.Command, fmt.Sprint(r.Shell), fmt.Sprint(len(r.Args))}
	out = append(out, r.Args...)
	out = append(out, r.Dir, fmt.Sprint(len(r.Env)))
	for _, k := range slices.Sorted(maps.Keys(r.Env)) {
		out = append(out, k, r.Env[k])
	}
	return out
}

// Words are the parts of the command that may name files: its words, those of a
// line for sh as sh would split the simple ones, and the values of its
// environment.
func (c Command) Words() []string {
	if c.Run == nil {
		return splitLine(c.Line)
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(c.Run.Env)) {
		out = append(out, c.Run.Env[k])
	}
	out = append(out, splitLine(c.Run.Command)...)
	for _, a := range c.Run.Args { // sh -c 'a b' has words of its own
		out = append(append(out, a), splitLine(a)...)
	}
	return out
}

// splitLine splits a line wherever a word may end. A file that is named in a way
// that only a shell understands is not found by it.
func splitLine(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()$`\"'{}=,", r) })
	if line != "" && !slices.Contains(words, line) {
		words = append(words, line)
	}
	return words
}

// IsScript reports whether a file is run rather than read, as far as it can be
// told from outside: by its permission, its first line or its name.
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
	n, _ := io.ReadFull(f, first) // an empty file is no script
	return n == 2 && string(first) == "#!"
}
