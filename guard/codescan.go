package guard

import (
	"path"
	"slices"
	"strings"
)

// argument is one argument of a call in program text.
type argument struct {
	known bool
	text  string
	list  []string // when it is a list
}

// scan looks through program text for calls that start git or another command,
// or that write into .git.
func (c *checker) scan(st *state, l *lang, text string) {
	if !c.enter() {
		return
	}
	defer c.leave()
	s := &codeScan{checker: c, st: withoutShell(st), lang: l, tokens: tokenize(l, text), vars: map[string]argument{}}
	for i := range s.tokens {
		if !c.spend() {
			return
		}
		s.at(i)
	}
}

type codeScan struct {
	*checker
	st     *state
	lang   *lang
	tokens []token
	vars   map[string]argument
}

func (s *codeScan) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == 'p' && s.tokens[i].text == text
}

func (s *codeScan) at(i int) {
	t := s.tokens[i]
	if t.kind == '`' {
		s.nested(s.st, t.text, s.lang.name+" runs a command")
		return
	}
	if t.kind != 'i' {
		return
	}
	if s.is(i+1, "=") && !s.is(i+2, "=") && i+2 < len(s.tokens) {
		if args, _ := s.collect(i+2, 1); len(args) > 0 && args[0].known {
			s.vars[t.text] = args[0]
		}
		return
	}
	name := t.text
	if name == "git" && s.is(i+1, ".") && s.is(i+3, "(") { // GitPython, simple-git, sh
		sub := strings.ReplaceAll(s.tokens[i+2].text, "_", "-")
		if isGitCommand(sub) {
			s.git(s.st, append([]string{"git", sub}, s.flat(i+4)...))
		}
		return
	}
	if name == "git" && s.is(i+1, "(") && !s.is(i-1, ".") && s.lang.name == "python" {
		s.git(s.st, append([]string{"git"}, s.flat(i+2)...))
		return
	}
	if name == "commit" && s.is(i-1, ".") && s.is(i+1, "(") && i >= 2 && s.tokens[i-2].text == "index" {
		s.git(s.st, []string{"git", "commit"})
		return
	}
	s.calls(i, name)
}

// calls looks at a call of a function that runs a command or writes a file.
func (s *codeScan) calls(i int, name string) {
	var args []argument
	switch {
	case s.is(i+1, "("):
		args, _ = s.collect(i+2, 64)
	case i+1 < len(s.tokens) && (s.tokens[i+1].kind == 's' || s.tokens[i+1].kind == 'l') && s.lang.name != "python" && s.lang.name != "node":
		args, _ = s.collect(i+1, 64)
	default:
		return
	}
	if (name == "eval" || name == "exec" && s.lang.name == "python") && len(args) > 0 && args[0].known {
		s.scan(s.st, s.lang, args[0].text)
		return
	}
	if slices.Contains(strings.Fields(s.lang.calls), name) {
		s.command(name, args)
	}
	s.writes(i, name, args)
}

// command runs what the arguments of a starting function amount to.
func (s *codeScan) command(name string, args []argument) {
	if name == "open" { // perl: open(F, "-|", "git", "stash") or open(F, "git stash |")
		if len(args) > 1 && strings.Contains(args[0].text, "|") {
			args = args[1:]
		} else if len(args) == 0 || !strings.HasSuffix(strings.TrimSpace(args[0].text), "|") {
			return
		} else {
			args[0].text = strings.TrimSuffix(strings.TrimSpace(args[0].text), "|")
		}
	}
	if len(args) == 0 {
		return
	}
	a := args[0]
	switch {
	case a.list != nil:
		s.run(s.st, a.list)
	case !a.known:
	case len(args) > 1 && args[1].list != nil:
		list := args[1].list
		if strings.HasPrefix(name, "exec") && len(list) > 0 && path.Base(list[0]) == path.Base(a.text) && s.lang.name == "python" {
			list = list[1:]
		}
		if strings.ContainsAny(a.text, " \t") && len(list) == 0 {
			s.nested(s.st, a.text, s.lang.name+" runs it")
			return
		}
		s.run(s.st, append([]string{a.text}, list...))
	case len(args) > 1 && args[1].known && !strings.ContainsAny(a.text, " \t"):
		words := []string{a.text}
		for _, x := range args[1:] {
			if x.known && x.list == nil {
				words = append(words, x.text)
			}
		}
		if strings.HasPrefix(name, "execl") || strings.HasPrefix(name, "spawnl") {
			words = append(words[:1], words[min(2, len(words)):]...)
		}
		s.run(s.st, words)
	default:
		s.nested(s.st, a.text, s.lang.name+" runs it")
	}
}

// collect reads up to limit arguments from token i to the closing bracket, or to
// the end of the statement when there is none.
func (s *codeScan) collect(i, limit int) (args []argument, end int) {
	var cur argument
	some := false
	flush := func() {
		if some {
			args = append(args, cur)
		}
		cur, some = argument{}, false
	}
	for depth := 0; i < len(s.tokens) && len(args) < limit; i++ {
		t := s.tokens[i]
		switch {
		case depth == 0 && (t.kind == 'p' && (t.text == ")" || t.text == ";" || t.text == "}" || t.text == "]") || t.kind == 'n' && limit == 1):
			flush()
			return args, i
		case depth == 0 && t.kind == 'p' && t.text == ",":
			flush()
		case depth == 0 && t.kind == 'p' && t.text == "[" && !some:
			cur.list, i = s.stringList(i + 1)
			cur.known, some = true, true
		case t.kind == 'p' && strings.Contains("([{", t.text):
			depth++
			some = true
		case t.kind == 'p' && strings.Contains(")]}", t.text):
			depth--
		case depth > 0:
		case t.kind == 's' || t.kind == 'l':
			if t.kind == 'l' {
				cur.list = t.words
			}
			cur.text += t.text
			cur.known, some = true, true
		case t.kind == 'i':
			if v, ok := s.vars[t.text]; ok {
				cur.known, cur.list = true, v.list
				cur.text += v.text
			} else if cur.known {
				cur.text += unknownValue(kindOpen, t.text)
			}
			some = true
		case t.kind == 'p' && t.text == "=": // a named argument: shell=True
			cur.known, some = false, false
			cur.list = nil
			for i+1 < len(s.tokens) && !s.is(i+1, ",") && !s.is(i+1, ")") {
				i++
			}
		}
	}
	flush()
	return args, i
}

// stringList reads ['git', 'reset', x] to its closing bracket.
func (s *codeScan) stringList(i int) ([]string, int) {
	list := []string{}
	word, some := "", false
	flush := func() {
		if some {
			list = append(list, word)
		}
		word, some = "", false
	}
	for depth := 0; i < len(s.tokens); i++ {
		t := s.tokens[i]
		switch {
		case depth == 0 && s.is(i, "]"):
			flush()
			return list, i
		case depth == 0 && s.is(i, ","):
			flush()
		case t.kind == 'p' && strings.Contains("([{", t.text):
			depth++
		case t.kind == 'p' && strings.Contains(")]}", t.text):
			depth--
		case depth > 0:
		case t.kind == 's':
			word += t.text
			some = true
		case t.kind == 'i':
			v, ok := s.vars[t.text]
			switch {
			case ok && v.list != nil:
				list = append(list, v.list...)
			case ok:
				word += v.text
				some = true
			default:
				word += unknownValue(kindOpen, t.text)
				some = true
			}
		}
	}
	flush()
	return list, i
}

// flat returns the strings among a call's arguments, lists opened.
func (s *codeScan) flat(i int) []string {
	args, _ := s.collect(i, 64)
	var out []string
	for _, a := range args {
		switch {
		case a.list != nil:
			out = append(out, a.list...)
		case a.known:
			out = append(out, a.text)
		}
	}
	return out
}

var fileWriters = strings.Fields(`rmtree remove removeSync unlink unlinkSync rmdir rename renameSync replace rmSync rm rm_rf rm_r delete writeFileSync writeFile
 appendFileSync mkdirSync makedirs mkdir move symlink chmod truncate write_text write_bytes touch outputFileSync file_put_contents`)

// writes looks for functions that write or delete a file inside .git.
func (s *codeScan) writes(i int, name string, args []argument) {
	switch {
	case name == "open":
		if len(args) == 0 || !args[0].known {
			return
		}
		mode := ""
		if len(args) > 1 {
			mode = args[1].text
		}
		if strings.ContainsAny(mode, "wax+>") {
			s.protect(s.st, s.lang.name, []string{args[0].text, args[len(args)-1].text})
		}
		return
	case !slices.Contains(fileWriters, name):
		return
	}
	for _, a := range args {
		if a.known && a.list == nil {
			s.protect(s.st, s.lang.name, []string{a.text})
		}
	}
	// Path('.git/HEAD').unlink()
	if s.is(i-1, ".") && s.is(i-2, ")") && i >= 4 && s.tokens[i-3].kind == 's' && s.is(i-4, "(") {
		s.protect(s.st, s.lang.name, []string{s.tokens[i-3].text})
	}
}
