package git

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// Config is git's configuration as it holds in one repository: system, global,
// local and worktree files with all they include, and what superqode itself
// passes on the command line. Entries are in git's order; a later one overrides
// an earlier one.
type Config struct {
	Entries []ConfigEntry
}

// ConfigEntry is one line of the configuration.
type ConfigEntry struct {
	Scope  string // "system", "global", "local", "worktree" or "command"
	Origin string // "file:PATH", relative to the work tree's root or absolute, or "command line:"
	Key    string // section and name in lower case, the subsection as it is: remote.Origin.url
	Value  string // "true" for a key without "="
}

// Config returns the configuration of the repository as it was when Discover
// found it, or, of a Repo that was made by other means, as it is now.
func (r *Repo) Config(ctx context.Context) (*Config, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if r.config != nil {
		return r.config, nil
	}
	if r.TopLevel == "" {
		out, err := r.Output(ctx, Cmd{Args: append([]string{"--git-dir", r.GitDir}, listConfig("").Args...)})
		return parseConfig(string(out)), err
	}
	return r.readConfig(ctx, r.TopLevel)
}

// listConfig is a call of git that answers all questions about the configuration.
// It is git that knows where the system's configuration lies, which conditional
// includes apply and which repository it may trust, so the files are not parsed
// here: go-git's parser follows no include.
func listConfig(dir string) Cmd {
	return Cmd{Dir: dir, Args: []string{"config", "--list", "--includes", "--show-scope", "--show-origin", "-z"}}
}

func (g *Git) readConfig(ctx context.Context, dir string) (*Config, error) {
	out, err := g.Output(ctx, listConfig(dir))
	return parseConfig(string(out)), err
}

// readConfigAndVersion is readConfig for a git whose version is not known: the
// first event that it writes to its trace2 target is its version. The version is
// zero where git does not tell.
func (g *Git) readConfigAndVersion(ctx context.Context, dir string) (*Config, Version, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, Version{}, err
	}
	defer r.Close() //nolint:errcheck // read only
	c := listConfig(dir)
	c.Env, c.events = []string{"GIT_TRACE2_EVENT=3", "GIT_TRACE2_EVENT_BRIEF=1"}, w
	out, err := g.Output(ctx, c)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, Version{}, err
	}
	return parseConfig(string(out)), versionEvent(r), nil
}

// versionEvent reads the first trace2 event of a git that has ended.
func versionEvent(f *os.File) Version {
	// the event lies in the pipe; this is for a wrapper that left a program behind
	_ = f.SetReadDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 4096)
	n, _ := f.Read(buf)
	line, _, ok := bytes.Cut(buf[:n], []byte("\n"))
	var event struct{ Event, Exe string }
	if !ok || json.Unmarshal(line, &event) != nil || event.Event != "version" {
		return Version{}
	}
	v, _ := ParseVersion("git version " + event.Exe) // zero on an error
	return v
}

// parseConfig reads "scope\0origin\0key\nvalue\0" of git config -z.
func parseConfig(text string) *Config {
	c := &Config{}
	for f := range slices.Chunk(strings.Split(text, "\x00"), 3) {
		if len(f) < 3 {
			break
		}
		key, value, ok := strings.Cut(f[2], "\n")
		if !ok {
			value = "true"
		}
		c.Entries = append(c.Entries, ConfigEntry{f[0], f[1], key, value})
	}
	return c
}

// Last returns the value of a key that counts, and whether the key is set. The
// key's section and name are in lower case.
func (c *Config) Last(key string) (string, bool) {
	for i := len(c.Entries) - 1; i >= 0; i-- {
		if c.Entries[i].Key == key {
			return c.Entries[i].Value, true
		}
	}
	return "", false
}

// Get is Last for a caller to whom a key that is not set is an empty one.
func (c *Config) Get(key string) string {
	v, _ := c.Last(key)
	return v
}

// All yields the keys and values in the order in which git reads them.
func (c *Config) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, e := range c.Entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Bool reads a value as git does; what is no boolean counts as def.
func (c *Config) Bool(key string, def bool) bool {
	v, ok := c.Last(key)
	if !ok {
		return def
	}
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	case "", "false", "no", "off", "0":
		return false
	}
	return def
}

// Users is the configuration without what superqode passes on the command line.
func (c *Config) Users() *Config {
	return &Config{slices.DeleteFunc(slices.Clone(c.Entries), func(e ConfigEntry) bool { return e.Scope == "command" })}
}

// UserPath returns a path that the user configured, and whether the key is set.
// "~/" is expanded as git does; a value that needs more than that (~user/,
// %(prefix)/) git expands.
func (r *Repo) UserPath(ctx context.Context, key string) (string, bool, error) {
	c, err := r.Config(ctx)
	if err != nil {
		return "", false, err
	}
	v, ok := c.Users().Last(key)
	home := r.Getenv("HOME")
	switch {
	case !ok:
		return "", false, nil
	case strings.HasPrefix(v, "~/") && home != "":
		return home + v[1:], true, nil
	case !strings.HasPrefix(v, "~") && !strings.HasPrefix(v, "%(") && !strings.HasPrefix(v, ":("):
		return v, true, nil
	}
	out, err := r.Output(ctx, Cmd{Dir: r.dir(), Args: []string{"config", "--show-scope", "-z", "--type=path", "--get-all", key}})
	if err != nil {
		return "", false, err
	}
	path := ""
	for f := range slices.Chunk(strings.Split(string(out), "\x00"), 2) {
		if len(f) == 2 && f[0] != "command" {
			path = f[1]
		}
	}
	return path, true, nil
}

// UserDefault is where git looks for a file of the user's ("ignore",
// "attributes") when the configuration names none; "" where there is no home.
func (g *Git) UserDefault(name string) string {
	if dir := g.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return dir + "/git/" + name
	}
	if home := g.Getenv("HOME"); home != "" {
		return home + "/.config/git/" + name
	}
	return ""
}
