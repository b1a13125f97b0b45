package config

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/outputs"
)

// config turns the collected values, which have all been checked, into a
// Config.
func (l *loader) config() *Config {
	c := &Config{Agents: map[superqode.AgentID]string{}}
	str := func(key string) string { return l.values[key].Value.(string) }
	num := func(key string) int64 { return l.values[key].Value.(int64) }
	truth := func(key string) bool { return l.values[key].Value.(bool) }
	all := func(key string) []string { return stringsOf(l.values[key].Value) }
	c.Workspace = Workspace{
		DefaultMode:     superqode.Mode(str("workspace.default_mode")),
		Template:        str("workspace.template"),
		Case:            str("workspace.case"),
		Cwd:             str("workspace.cwd"),
		PreserveOnError: truth("workspace.preserve_on_error"),
		CleanupAfter:    time.Duration(num("workspace.cleanup_after_hours")) * time.Hour,
		MaxSize:         num("workspace.max_size_mb") << 20,
		SizeSet:         l.values["workspace.max_size_mb"].Origin.Layer != LayerDefault,
		ExcludePatterns: all("workspace.exclude_patterns"),
		Include:         all("workspace.include"),
		Watcher: Watcher{
			Enabled:        truth("workspace.watcher.enabled"),
			Debounce:       time.Duration(num("workspace.watcher.debounce_ms")) * time.Millisecond,
			IgnorePatterns: all("workspace.watcher.ignore_patterns"),
		},
	}
	c.Guard = Guard{Enforce: Enforce(str("guard.enforce")), Policy: str("guard.policy"), Allow: all("guard.allow"), Deny: all("guard.deny")}
	c.Claims = str("claims")
	c.Limits = limits(str, num)
	c.Artifacts = Artifacts{Outputs: all("artifacts.outputs"), KeepSessions: int(num("artifacts.keep_sessions")), Limits: outputs.Limits{
		MaxFiles: int(num("artifacts.max_files")), MaxFileBytes: sizeOf(str("artifacts.max_file_bytes")), MaxTotalBytes: sizeOf(str("artifacts.max_total_bytes")),
	}}
	for i, v := range l.values["setup"].Value.([]any) {
		c.Setup = append(c.Setup, setupEntry(v.(map[string]any), i))
	}
	for i, v := range l.values["inputs"].Value.([]any) {
		c.Inputs = append(c.Inputs, inputOf(v.(map[string]any), i))
	}
	for _, key := range l.order {
		if l.fields[key].kind != dict {
			c.values = append(c.values, l.values[key])
			continue
		}
		names := l.named(key)
		if len(names) == 0 {
			c.values = append(c.values, l.values[key])
		}
		for _, name := range names {
			k := key + "." + name
			id, err := superqode.ParseAgentID(name)
			if err != nil {
				continue // the decoder let no such name through
			}
			c.Agents[id] = str(k)
			c.values = append(c.values, l.values[k])
		}
	}
	return c
}

// named returns the names of a dict's entries, sorted.
func (l *loader) named(key string) []string {
	var names []string
	for k := range l.values {
		if name, ok := strings.CutPrefix(k, key+"."); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func stringsOf(v any) []string {
	items, ok := v.([]any)
	if !ok {
		return nil
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i], _ = item.(string)
	}
	return out
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}
