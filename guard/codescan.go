package guard

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// scan looks through program text for calls that start git or another command,
// or that write into .git, and returns what the program prints as far as it is
// put together from texts.
func (c *checker) scan(st *state, l *lang, text string, vars map[string]argument) string {
	if !c.enter() {
		return ""
	}
	defer c.leave()
	if l.name == "tcl" {
		c.tcl(st, text)
		return ""
	}
	s := &codeScan{checker: c, st: withoutShell(st), lang: l, text: text, tokens: tokenize(l, text), vars: map[string]argument{}, alias: map[string]string{}, loops: map[string][]argument{}, funcs: map[string]codeFunc{}, inside: map[string]bool{}}
	for name, v := range vars {
		s.vars[name] = v
	}
	s.st.stdin = nil
	for _, in := range s.inputs(st) {
		s.input = in
		if !s.round() {
			break
		}
	}
	return s.out.String()
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
	text   string
	tokens []token
	vars   map[string]argument
	alias  map[string]string     // other names of functions: r = subprocess.run
	funcs  map[string]codeFunc   // functions of the text's own
	inside map[string]bool       // those under way
	loops  map[string][]argument // for c in ["stash", "push"]
	input  string                // awk: the line under way
	out    strings.Builder
}

// inputs are the lines for which awk's rules run; other programs run once.
func (s *codeScan) inputs(st *state) []string {
	if s.lang.name != "awk" {
		return []string{""}
	}
	if st.stdin == nil {
		return []string{unknownValue(kindOpen, "line")}
	}
	if !isKnown(*st.stdin) {
		return []string{sameKind(*st.stdin)}
	}
	lines := strings.Split(strings.TrimSuffix(*st.stdin, "\n"), "\n")
	return lines[:min(len(lines), maxRounds)]
}

// field is awk's $0, $1, $NF.
func (s *codeScan) field(name string) string {
	if !isKnown(s.input) {
		return s.input
	}
	f := strings.Fields(s.input)
	switch n, err := strconv.Atoi(name); {
	case err != nil && name == "NF" && len(f) > 0:
		return f[len(f)-1]
	case err != nil:
		return unknownValue(kindOpen, "field")
	case n == 0:
		return s.input
	case n <= len(f):
		return f[n-1]
	}
	return ""
}

// round looks at every token once; with a loop over known words, once for each
// word.
func (s *codeScan) round() bool {
	s.findFuncs()
	s.findLoops()
	rounds := 1
	for _, items := range s.loops {
		rounds = max(rounds, min(len(items), maxRounds))
	}
	for n := range rounds {
		for name, items := range s.loops {
			s.vars[name] = items[min(n, len(items)-1)]
		}
		for i := range s.tokens {
			if !s.spend() {
				return false
			}
			s.at(i)
		}
	}
	return true
}

// findLoops binds the variables of "for x in […]" and "for (const x of […])".
func (s *codeScan) findLoops() {
	for i, t := range s.tokens {
		if t.kind != 'i' || t.text != "in" && t.text != "of" || i == 0 || s.tokens[i-1].kind != 'i' {
			continue
		}
		v, _ := s.eval(i+1, true)
		items := v.items
		if items == nil {
			for _, text := range v.list {
				items = append(items, textArgument(text))
			}
		}
		if len(items) > 0 {
			s.loops[s.tokens[i-1].text] = items
		}
	}
}

func (s *codeScan) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == 'p' && s.tokens[i].text == text
}

func (s *codeScan) at(i int) {
	t := s.tokens[i]
	switch t.kind {
	case '`':
		s.nested(s.st, s.interpolate(t), s.lang.name+" runs a command")
	case 's':
		s.stringAt(i)
	case 'i':
		if !s.assign(i) && !s.gitLibrary(i) {
			s.calls(i, t.text)
		}
	}
}

// stringAt is a string that a language runs because of what stands beside it.
func (s *codeScan) stringAt(i int) {
	switch s.lang.name {
	case "awk": // "cmd" | getline, print | "cmd"
		s.awkPipe(i)
	case "groovy": // "cmd".execute(), "cmd".!
		if s.is(i+1, ".") && i+2 < len(s.tokens) && (s.tokens[i+2].text == "execute" || s.is(i+2, "!")) {
			s.nested(s.st, s.tokens[i].text, "it is executed")
		}
	case "node", "python": // process["run"]("git …"), getattr(os, "system")("git …")
		name := s.tokens[i].text
		if (s.is(i-1, "[") && s.is(i+1, "]") || s.is(i-1, ",") && s.is(i+1, ")")) && s.is(i+2, "(") && s.starts(name) {
			args, _ := s.args(i+3, true)
			s.command(name, args)
		}
	}
}

// assign follows x = …, x += …, x.append(…) and other names of functions.
func (s *codeScan) assign(i int) bool {
	name := s.tokens[i].text
	switch {
	case s.is(i+1, "=") && !s.is(i+2, "=") && !s.is(i+2, ">") && !s.is(i-1, "=") && !s.is(i-1, "!"):
		v, end := s.eval(i+2, false)
		if last := v.path[strings.LastIndexByte(v.path, '.')+1:]; !v.known && last != "" && s.starts(last) && !s.is(end, "(") {
			s.alias[name] = last
		}
		if v.known || v.fields != nil {
			s.vars[name] = v
		}
		return false // what stands on the right is looked at, too
	case (s.is(i+1, "+") || s.is(i+1, ".") && s.dotJoins()) && s.is(i+2, "="):
		v, _ := s.eval(i+3, false)
		s.vars[name] = concat(s.vars[name], v)
		return true
	case s.is(i+1, ".") && s.is(i+3, "(") && i+2 < len(s.tokens):
		old, ok := s.vars[name]
		if how := s.tokens[i+2].text; ok && old.list != nil && (how == "append" || how == "push" || how == "extend" || how == "add") {
			args, _ := s.args(i+4, true)
			for _, a := range args {
				if a.list == nil {
					a.list = []string{a.asText("item")}
				}
				old = argument{known: true, list: slices.Concat(old.list, a.list)}
			}
			s.vars[name] = old
			return true
		}
	case s.starts(name) && i+2 < len(s.tokens) && s.tokens[i+2].kind == 'i' && (s.tokens[i+1].text == "as" || s.is(i+1, ":") && s.lang.name == "node"):
		s.alias[s.tokens[i+2].text] = name // from subprocess import run as r; {exec: e} = require(…)
	}
	return false
}

// gitLibrary knows GitPython, simple-git, sh, plumbum and dulwich.
func (s *codeScan) gitLibrary(i int) bool {
	name := s.tokens[i].text
	switch {
	case (name == "git" || name == "porcelain") && s.is(i+1, ".") && s.is(i+3, "("):
		sub := strings.ReplaceAll(s.tokens[i+2].text, "_", "-")
		if !isGitCommand(sub) {
			return false
		}
		s.git(s.st, append([]string{"git", sub}, s.flat(i+4)...))
	case name == "git" && s.is(i+1, "(") && !s.is(i-1, ".") && s.lang.name == "python":
		s.git(s.st, append([]string{"git"}, s.flat(i+2)...))
	case name == "commit" && s.is(i-1, ".") && s.is(i+1, "(") && i >= 2 && s.tokens[i-2].text == "index":
		s.git(s.st, []string{"git", "commit"})
	default:
		return false
	}
	return true
}

// starts reports whether a function of this name runs a command. Names that mean
// other things, too, count only where the program names the module.
func (s *codeScan) starts(name string) bool {
	if !slices.Contains(strings.Fields(s.lang.calls), name) {
		return false
	}
	if s.lang.needs == "" {
		return true
	}
	return slices.ContainsFunc(strings.Fields(s.lang.needs), func(n string) bool { return strings.Contains(s.text, n) })
}

// calls looks at a call of a function that runs a command, writes a file or
// prints.
func (s *codeScan) calls(i int, name string) {
	if to, ok := s.alias[name]; ok && !s.is(i-1, ".") {
		name = to
	}
	var args []argument
	next := token{}
	if i+1 < len(s.tokens) {
		next = s.tokens[i+1]
	}
	switch {
	case s.is(i+1, "("):
		args, _ = s.args(i+2, true)
	case s.lang.name != "python" && s.lang.name != "node" && (next.kind == 's' || next.kind == 'l' || next.kind == 'i' || s.is(i+1, "*")):
		args, _ = s.args(i+1, false)
	default:
		return
	}
	if !s.defines(i) && !s.ofModule(i, name) && s.callFunc(name, args) {
		return
	}
	switch {
	case (name == "eval" || name == "exec" && s.lang.name == "python") && len(args) > 0 && args[0].known && args[0].list == nil:
		s.scan(s.st, s.lang, args[0].text, nil)
		return
	case s.starts(name):
		s.command(name, args)
	case printers.has(name) || name == "log" && s.lang.name == "node" || name == "write" && (s.lang.name == "python" || s.lang.name == "node") && i > 1 && s.tokens[i-2].text == "stdout":
		s.prints(name, args)
	}
	s.writes(i, name, args)
}

// ofModule reports whether a name is another module's function that runs a
// command, and not the function of the text's own with the same name:
// subprocess.run in the body of "def run(cmd)".
func (s *codeScan) ofModule(i int, name string) bool {
	return i > 1 && s.is(i-1, ".") && s.starts(name) && !slices.Contains([]string{"self", "this", "cls"}, s.tokens[i-2].text)
}

// defines reports whether the name at token i is being defined there.
func (s *codeScan) defines(i int) bool {
	return i > 0 && s.tokens[i-1].kind == 'i' && slices.Contains([]string{"def", "function", "sub"}, s.tokens[i-1].text)
}

var printers = words{text: "print puts println printf say echo"}

// prints adds to what the program prints.
func (s *codeScan) prints(name string, args []argument) {
	words := []string{}
	for _, a := range args {
		if a.name == "" {
			words = append(words, a.asText("text"))
		}
	}
	sep, end := "", ""
	switch s.lang.name {
	case "python", "node", "awk":
		sep, end = " ", "\n"
	case "ruby":
		sep, end = "\n", "\n"
	}
	if name == "printf" {
		s.out.WriteString(printf(words))
		return
	}
	if s.out.Len() < maxValue {
		s.out.WriteString(strings.Join(words, sep) + end)
	}
}

// flat returns the texts among a call's arguments, lists opened.
func (s *codeScan) flat(i int) []string {
	args, _ := s.args(i, true)
	var out []string
	for _, a := range args {
		switch {
		case a.list != nil:
			out = append(out, a.list...)
		case a.known && a.name == "":
			out = append(out, a.text)
		}
	}
	return out
}

// interpolations tell how variables stand in a text. They are compiled when the
// first is needed: most calls of the guard read no program.
var interpolations = sync.OnceValue(func() map[byte]*regexp.Regexp {
	return map[byte]*regexp.Regexp{
		'$': regexp.MustCompile(`([$@])\{?([A-Za-z_]\w*)\}?`),
		'f': regexp.MustCompile(`()\{([^{}]*)\}`),
		'j': regexp.MustCompile(`()\$\{([^{}]*)\}`),
		'#': regexp.MustCompile(`()#\{([^{}]*)\}`),
	}
})

// interpolate puts the values of variables into a text.
func (s *codeScan) interpolate(t token) string {
	if t.interp == 0 || !strings.ContainsAny(t.text, "${@") {
		return t.text
	}
	re, ok := interpolations()[t.interp]
	if !ok {
		return t.text
	}
	return re.ReplaceAllStringFunc(t.text, func(found string) string {
		m := re.FindStringSubmatch(found)
		name := strings.TrimSpace(m[2])
		if v, ok := s.vars[m[1]+name]; ok {
			return v.asText(name)
		}
		if n := strings.IndexFunc(name, func(r rune) bool { return !isNameByte(byte(r)) }); n >= 0 {
			if text, err := strconv.Unquote(name); err == nil { // ${"stash"}
				return text
			}
		}
		return unknownValue(kindOpen, path.Base(name))
	})
}
