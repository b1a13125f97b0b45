package guard

import (
	"slices"
	"strings"
)

// unparsable looks at text that is no shell: a shell would refuse it too, in
// whole or from that point on, but the text may be meant for another one (fish,
// PowerShell). Each piece between separators that begins with git is decided on;
// pieces inside an open quote are words, not commands.
func (c *checker) unparsable(st *state, text string, err error) {
	c.undecided(text, "not readable as a shell line: "+err.Error())
	for _, words := range pieces(text) {
		for len(words) > 0 && (assignment(words[0]) || slices.Contains([]string{"and", "or", "not", "then", "do", "else", "{", "(", "begin", "!", "&"}, words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if _, ok := gitProgram(words[0]); ok {
			c.run(st.clone(), words)
		}
	}
}

// pieces splits text at separators outside of quotes, and each piece into words.
func pieces(text string) [][]string {
	var out [][]string
	var words []string
	var cur strings.Builder
	var quote rune
	open := false
	endWord := func() {
		if open {
			words = append(words, cur.String())
		}
		cur.Reset()
		open = false
	}
	for _, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				cur.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '\n' || r == ';' || r == '&' || r == '|' || r == '{' || r == '}' || r == '(' || r == ')':
			endWord()
			if len(words) > 0 {
				out = append(out, words)
			}
			words = nil
		case r == ' ' || r == '\t' || r == '\r':
			endWord()
		default:
			cur.WriteRune(r)
			open = true
		}
		if len(out) > 500 {
			break
		}
	}
	if quote == 0 {
		endWord()
	}
	if len(words) > 0 && (quote == 0 || len(words) > 1) {
		out = append(out, words)
	}
	return out
}
