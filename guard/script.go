package guard

import (
	"path"
	"strings"
)

// script runs the text of a script file.
func (c *checker) script(st *state, text string, words []string) string {
	n := st.clone()
	n.arg0, n.params = words[0], words[1:]
	if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "#!") {
		if lang := language(interpreter(line[2:])); lang != nil {
			return c.scan(n, lang, text, nil)
		}
	}
	return c.shell(n, text)
}

// interpreter returns the program of a "#!" line.
func interpreter(line string) string {
	f := strings.Fields(line)
	if len(f) == 0 {
		return ""
	}
	base := path.Base(f[0])
	if base == "env" && len(f) > 1 {
		for _, w := range f[1:] {
			if !strings.HasPrefix(w, "-") {
				return path.Base(w)
			}
		}
	}
	return base
}

// source reads a script into the running shell.
func (c *checker) source(st *state, words []string) string {
	if len(words) < 2 {
		return ""
	}
	if text, ok := c.files[under(st.dir, words[1])]; ok {
		c.step(strings.Join(words, " "), "a script that this text wrote")
		saved := st.params
		if len(words) > 2 {
			st.params = words[2:]
		}
		out := c.sourced(st, text)
		st.params = saved
		return out
	}
	if text := c.readFile(st, words[1]); isKnown(text) && text != "" {
		return c.sourced(st, text)
	}
	c.undecided(strings.Join(words, " "), "a script file")
	return unknownValue(kindOpen, "source")
}

// sourced runs the text of a file that return may leave.
func (c *checker) sourced(st *state, text string) string {
	st.returns++
	out := c.shell(st, text)
	st.returns--
	if st.leaving {
		st.ended, st.leaving = false, false
	}
	return out
}
