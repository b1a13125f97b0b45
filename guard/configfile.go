package guard

import (
	"path"
	"strings"
)

// writtenConfig looks a key up in configuration files that the text itself wrote
// and then made git read: by GIT_CONFIG_GLOBAL, by HOME, by -c include.path.
func (c *checker) writtenConfig(inv *invocation, key string) (value string, ok bool) {
	if len(c.files) == 0 {
		return "", false
	}
	var files []string
	for _, name := range []string{"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"} {
		if f, ok := inv.st.exported(name); ok {
			files = append(files, f)
		}
	}
	if home, ok := inv.st.exported("HOME"); ok {
		files = append(files, path.Join(home, ".config/git/config"), path.Join(home, ".gitconfig"))
	}
	if xdg, ok := inv.st.exported("XDG_CONFIG_HOME"); ok {
		files = append(files, path.Join(xdg, "git/config"))
	}
	for _, e := range inv.config {
		if strings.EqualFold(e.key, "include.path") {
			files = append(files, inv.st.tilde(e.value))
		}
	}
	for _, f := range files {
		text, written := c.files[under(inv.st.dir, f)]
		if !written {
			continue
		}
		for _, e := range parseConfig(text) {
			if strings.EqualFold(e.key, key) {
				value, ok = e.value, true
			}
		}
	}
	return value, ok
}

// parseConfig reads sections and "key = value" lines of a configuration file.
func parseConfig(text string) []configEntry {
	var out []configEntry
	section := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			head, after, _ := strings.Cut(rest, "]")
			name, sub, has := strings.Cut(head, " ")
			if section = name; has {
				section += "." + strings.Trim(strings.TrimSpace(sub), `"`)
			}
			line = strings.TrimSpace(after)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			value = "true"
		}
		value = strings.TrimSpace(value)
		if strings.Contains(value, `"`) {
			value = strings.Join(splitCommand(value), " ")
		}
		out = append(out, configEntry{section + "." + strings.TrimSpace(key), value})
	}
	return out
}
