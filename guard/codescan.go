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
	if l.name == "tcl" {
		c.tcl(st, text)
		return
	}
	s := &codeScan{checker: c, st: withoutShell(st), lang: l, tokens: tokenize(l, text), vars: map[string]argument{}}
	for i := range s.tokens {
		if !c.spend() {
			return
		}
		s.at(i)
	}
}

// tcl runs the commands of "exec …" and "spawn …".
func (c *checker) tcl(st *state, text string) {
	for _, words := range pieces(text) {
		if len(words) > 1 && (words[0] == "exec" || words[0] == "spawn") {
			c.run(withoutShell(st), words[1:])
		}
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
	if t.kind == 's' && s.lang.name == "awk" && (s.is(i-1, "|") || s.is(i+1, "|") && i+2 < len(s.tokens) && s.tokens[i+2].text == "getline") {
		s.nested(s.st, t.text, "awk runs it")
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
	if (name == "git" || name == "porcelain") && s.is(i+1, ".") && s.is(i+3, "(") { // GitPython, simple-git, sh, dulwich
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
	if name == "Command" && s.is(i+1, "(") { // new Deno.Command("git", {args: ["push"]})
		args, end := s.collect(i+2, 1)
		for j := end; j < len(s.tokens) && j < end+20; j++ {
			if s.tokens[j].text == "args" && s.is(j+1, ":") && s.is(j+2, "[") && len(args) > 0 && args[0].known {
				list, _ := s.stringList(j+3, "]")
				s.run(s.st, append([]string{args[0].text}, list...))
			}
		}
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
	case s.is(i+1, "*") && i+2 < len(s.tokens) && s.tokens[i+2].kind == 'l':
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
		i := slices.IndexFunc(args, func(a argument) bool { return strings.Contains(a.text, "|") })
		switch {
		case i < 0:
			return
		case args[i].text == "-|" || args[i].text == "|-":
			args = args[i+1:]
		default:
			args = args[i:]
			args[0].text = strings.Trim(strings.TrimSpace(args[0].text), "|")
		}
	}
	for strings.HasPrefix(name, "spawn") && len(args) > 1 && !args[0].known { // os.spawnlp(os.P_WAIT, …)
		args = args[1:]
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
		case depth == 0 && t.kind == 'p' && t.text == "[" && (!some || cur.list != nil):
			list, end := s.stringList(i+1, "]")
			cur.list, i = append(cur.list, list...), end
			cur.known, some = true, true
		case depth == 0 && t.kind == 'p' && t.text == "(" && s.transparent(i, some): // ('git', 'push') or shlex.split('git push')
			list, end := s.stringList(i+1, ")")
			if i = end; len(list) == 1 {
				cur.text = list[0]
			} else {
				cur.list = list
			}
			cur.known, some = true, true
		case t.kind == 'i' && cur.known && s.is(i-1, "."): // a method of the value: .split()
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
		case t.kind == 'p' && t.text == "=" && i > 0 && slices.Contains([]string{"args", "cmd", "command", "popenargs"}, s.tokens[i-1].text):
			cur, some = argument{}, false
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

// transparent reports whether an opening bracket only groups: it begins an
// argument, or belongs to a function that hands its words on.
func (s *codeScan) transparent(i int, some bool) bool {
	if !some {
		return true
	}
	return i > 0 && slices.Contains([]string{"split", "list", "tuple", "str", "String"}, s.tokens[i-1].text) && !s.is(i+1, ")")
}

// stringList reads ['git', 'reset', x] to its closing bracket.
func (s *codeScan) stringList(i int, closing string) ([]string, int) {
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
		case depth == 0 && s.is(i, closing):
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
