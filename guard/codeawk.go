package guard

import (
	"slices"
	"strings"
)

// awkPipe is the string at token i where awk runs it: "cmd" | getline, or print
// TEXT | "cmd", whose input is what is printed.
func (s *codeScan) awkPipe(i int) {
	if s.is(i+1, "|") && i+2 < len(s.tokens) && s.tokens[i+2].text == "getline" {
		s.nested(s.st, s.tokens[i].text, "awk runs it")
		return
	}
	pipe := i - 1
	if s.is(pipe, "&") { // |&
		pipe--
	}
	if !s.is(pipe, "|") || s.is(pipe-1, "|") {
		return
	}
	st := s.st
	if text, ok := s.printed(pipe); ok {
		st = withInput(st, text)
	}
	s.nested(st, s.tokens[i].text, "awk runs it")
}

// printed is what the print or printf statement prints that ends at token end.
func (s *codeScan) printed(end int) (string, bool) {
	for j := end - 1; j >= 0 && !s.is(j, ";") && !s.is(j, "{") && !s.is(j, "}") && s.tokens[j].kind != 'n'; j-- {
		t := s.tokens[j]
		if t.kind != 'i' || !slices.Contains([]string{"print", "printf"}, t.text) {
			continue
		}
		var words []string
		args, _ := s.args(j+1, false)
		for _, a := range args {
			if a.list != nil { // print("a", "b")
				words = append(words, a.list...)
				continue
			}
			words = append(words, a.asText("text"))
		}
		if t.text == "printf" {
			return printf(words), true
		}
		return strings.Join(words, " ") + "\n", true
	}
	return "", false
}
