package guard

import (
	"slices"
)

// codeFunc is a function that program text defines.
type codeFunc struct {
	params     []string
	rest       bool // the last parameter takes all that is left
	start, end int  // the body's tokens
}

// findFuncs collects "def f(a, *b):", "function f(a, ...b) {", "f = (a) => …" and
// "sub f {".
func (s *codeScan) findFuncs() {
	for i, t := range s.tokens {
		if t.kind != 'i' {
			continue
		}
		switch {
		case (t.text == "def" && s.lang.name == "python" || t.text == "function" && (s.lang.name == "node" || s.lang.name == "php")) && s.is(i+2, "("):
			s.define(s.tokens[i+1].text, i+2, t.col)
		case s.lang.name == "node" && s.is(i+1, "=") && s.is(i+2, "("):
			if end := s.skip(i + 2); s.is(end, "=") && s.is(end+1, ">") {
				s.define(t.text, i+2, 0)
			}
		case s.lang.name == "node" && s.is(i+1, "=") && s.is(i+3, "=") && s.is(i+4, ">"):
			end := s.blockEnd(i + 5)
			s.funcs[t.text] = codeFunc{params: []string{s.tokens[i+2].text}, start: i + 5, end: end}
		case t.text == "sub" && s.lang.name == "perl" && s.is(i+2, "{"):
			s.funcs[s.tokens[i+1].text] = codeFunc{params: []string{"@_"}, rest: true, start: i + 2, end: s.skip(i + 2)}
		}
	}
}

// define reads parameters from the bracket at token i, and the body after it.
func (s *codeScan) define(name string, i, col int) {
	end := s.skip(i)
	f := codeFunc{}
	for j := i + 1; j < end-1; j++ {
		t := s.tokens[j]
		if t.kind != 'i' || !s.is(j-1, "(") && !s.is(j-1, ",") && !s.is(j-1, "*") && !s.is(j-1, ".") {
			continue
		}
		f.params = append(f.params, t.text)
		f.rest = s.is(j-1, "*") && !s.is(j-2, "*") || s.is(j-1, ".")
	}
	if s.lang.name == "python" {
		f.start, f.end = end, s.dedent(end, col)
	} else {
		for s.is(end, "=") || s.is(end, ">") {
			end++
		}
		f.start, f.end = end, s.blockEnd(end)
	}
	s.funcs[name] = f
}

// dedent is the end of a Python block that began on a line indented by col.
func (s *codeScan) dedent(i, col int) int {
	for ; i < len(s.tokens); i++ {
		if s.tokens[i].kind == 'n' && i+1 < len(s.tokens) && s.tokens[i+1].kind != 'n' && s.tokens[i+1].col <= col {
			return i
		}
	}
	return i
}

// blockEnd is the end of {…}, or of the expression at token i.
func (s *codeScan) blockEnd(i int) int {
	if s.is(i, "{") {
		return s.skip(i)
	}
	for i < len(s.tokens) && !s.is(i, ";") && s.tokens[i].kind != 'n' {
		i = s.skip(i)
	}
	return i
}

// callFunc runs the body of a function of the text's own with its parameters
// bound. It reports whether there is one.
func (s *codeScan) callFunc(name string, args []argument) bool {
	f, ok := s.funcs[name]
	if !ok || s.inside[name] || !s.enter() {
		return ok
	}
	defer s.leave()
	saved := map[string]argument{}
	for i, p := range f.params {
		saved[p] = s.vars[p]
		switch {
		case f.rest && i == len(f.params)-1:
			list := []string{}
			for _, a := range args[min(i, len(args)):] {
				if a.name == "" {
					list = append(list, a.asText("argument"))
				}
			}
			s.vars[p] = argument{known: true, list: list}
		case i < len(args):
			s.vars[p] = args[i]
		default:
			delete(s.vars, p)
		}
	}
	for _, a := range args { // named ones
		if a.name != "" && slices.Contains(f.params, a.name) {
			s.vars[a.name] = a
		}
	}
	s.inside[name] = true
	for i := f.start; i < f.end && s.spend(); i++ {
		s.at(i)
	}
	delete(s.inside, name)
	for p, v := range saved {
		s.vars[p] = v
	}
	return true
}

// owners are the modules whose functions of these names work on files.
var owners = words{text: "os fs fsp promises File FileUtils shutil Dir io FS Path pathlib"}

// onFiles reports whether a function that is called at token i works on files: a
// list has remove, and a text has replace, too.
func (s *codeScan) onFiles(i int, name string) bool {
	switch name {
	case "remove", "replace", "delete", "move", "write", "copy", "link", "cp":
	default:
		return true
	}
	if !s.is(i-1, ".") && !s.is(i-1, ">") && !s.is(i-1, ":") {
		return true
	}
	return i >= 2 && (owners.has(s.tokens[i-2].text) || s.is(i-2, ")") && i >= 5 && s.tokens[i-5].text == "require")
}
