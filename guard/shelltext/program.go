package shelltext

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// language is what must be known of a programming language to find the commands
// that a one-line program starts. There is one rule for all: a text, or a list of
// texts, that is handed to one of these functions is a command. What a program
// computes is not followed.
type language struct {
	names   string // of interpreters, without version numbers
	options string // option table
	program string // options whose value is program text; "" is the first operand
	comment string // begins a comment
	calls   string // functions that run a command
	needs   string // calls count only in a program that has one of these words in it
	interp  string // how a variable begins in "…"
}

var languages = []language{
	{names: "python pypy ipython", options: "c= m= W= X= u B E I s S O", program: "c", comment: "#", interp: "",
		calls: `system popen run call check_call check_output Popen getoutput getstatusoutput execv execvp execl execlp execlpe execve execvpe spawnl spawnlp
 spawnlpe spawnv spawnvp spawnvpe posix_spawn posix_spawnp create_subprocess_shell create_subprocess_exec sh spawn`},
	{names: "perl", options: "e= E= M= m= I= i? 0 l F? n p w a W x", program: "e E", comment: "#", calls: "system exec qx readpipe open", interp: "$@"},
	{names: "ruby jruby", options: "e= r= I= C= n p w a l W? 0 i?", program: "e", comment: "#", calls: "system exec spawn popen popen3 capture2 capture2e capture3 sh", interp: "#"},
	{names: "node nodejs bun deno tsx ts-node zx", options: "e/eval= p/print= r/require= import= input-type= loader= i", program: "eval print", comment: "//", interp: "$",
		calls: "execSync exec spawn spawnSync execFile execFileSync execa execaSync execaCommand command Command", needs: "child_process execa zx shelljs Bun Deno"},
	{names: "php", options: "r= B= E= d= c= z= F= n", program: "r B E", comment: "//", calls: "system exec shell_exec passthru popen proc_open", interp: "$"},
	{names: "awk gawk mawk nawk", options: "F= v= f= i=", comment: "#", calls: "system"},
	{names: "lua luajit", options: "e= l=", program: "e", comment: "--", calls: "execute popen"},
	{names: "R Rscript", options: "e=", program: "e", comment: "#", calls: "system system2"},
}

// languageOf returns the language of an interpreter, or nil.
func languageOf(program string) *language {
	program = strings.TrimRight(program, "0123456789.")
	if i := slices.IndexFunc(languages, func(l language) bool { return cmdline.In(l.names, program) }); i >= 0 {
		return &languages[i]
	}
	return nil
}

// interpreter looks for a program in an interpreter's arguments or input.
func (r *reader) interpreter(st *state, l *language, words []string) string {
	args := words[1:]
	if len(args) > 0 && args[0] == "eval" { // deno eval
		args = append([]string{"--eval"}, args[1:]...)
	}
	for i, a := range args { // -pe is -p -e
		if l.interp == "$" && cmdline.In("-pe -ep", a) {
			args = slices.Concat(args[:i], []string{"-e"}, args[i+1:])
		}
	}
	p := cmdline.ParseUntil(l.options, args)
	var texts []string
	for name := range strings.FieldsSeq(l.program) {
		texts = append(texts, p.Values[name]...)
	}
	rest := p.Args
	if l.program == "" && len(rest) > 0 {
		texts, rest = rest[:1], nil
	}
	switch {
	case len(texts) > 0:
		text := strings.Join(texts, "\n")
		r.Step(text, path.Base(words[0])+" program")
		r.scan(st, l, text)
	case p.Has("m") || p.Help || slices.Contains(args, "--version") || slices.Contains(args, "-V"):
	case len(rest) > 0 && rest[0] != "-":
		if text, ok := r.Files[st.path(rest[0])]; ok {
			r.Step(rest[0], "a script that this text wrote")
			r.scan(st, l, text)
		} else {
			r.Undecided(strings.Join(words, " "), "a script file")
		}
	case st.stdin != nil:
		r.scan(st, l, *st.stdin)
	}
	return open(path.Base(words[0]))
}

// scan looks through program text for calls that run a command or write into .git.
func (r *reader) scan(st *state, l *language, text string) {
	leave, ok := r.enter()
	if !ok {
		return
	}
	defer leave()
	s := &scanner{reader: r, st: st.program(), lang: l, tokens: tokenize(l, text), vars: map[string]value{}, helpers: map[string]bool{}}
	s.st.stdin = nil
	s.counts = l.needs == "" || slices.ContainsFunc(strings.Fields(l.needs), func(n string) bool { return strings.Contains(text, n) })
	for i := 0; i < len(s.tokens) && r.spend(); i++ {
		s.at(i)
	}
}

// scanner reads the tokens of one program.
type scanner struct {
	*reader
	st      *state
	lang    *language
	tokens  []token
	counts  bool             // calls run commands in this program
	vars    map[string]value // what names were set to
	helpers map[string]bool  // functions that the program defines: do they run commands?
}

// token is one token of program text: a name, a text, a list such as qw(a b), a
// command in backquotes, punctuation, or the end of a line.
type token struct {
	kind  byte // 'i', 's', 'l', '`', 'p' or 'n'
	text  string
	words []string // of a list
	first bool     // it begins its line
}

// value is what an expression comes to as far as it is a text, or a list of texts;
// the zero value is anything else.
type value struct {
	words []string
	list  bool
	deep  bool // of lists
	each  bool // one of the list, in a loop
}

func text1(s string) value { return value{words: []string{s}} }

func (s *scanner) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == 'p' && s.tokens[i].text == text
}

// name is the name at token i, or "".
func (s *scanner) name(i int) string {
	if i < 0 || i >= len(s.tokens) || s.tokens[i].kind != 'i' {
		return ""
	}
	return s.tokens[i].text
}

// at looks at the token at i: a command in backquotes, what a name is set to, a
// function's definition, a call.
func (s *scanner) at(i int) {
	name, arrow := s.name(i), s.is(i+1, "=") && s.is(i+2, "(") && s.is(s.skip(i+2), "=") // run = (c) => …
	switch {
	case s.tokens[i].kind == '`':
		s.nested(s.st, s.filled(s.tokens[i].text), "a program runs it")
	case name == "":
	case cmdline.In("def function sub", name):
		s.helpers[s.name(i+1)] = s.runs(i + 2)
	case arrow:
		s.helpers[name] = s.runs(i + 2)
	case s.is(i+1, "+") && s.is(i+2, "="):
		v, _ := s.value(i + 3)
		old := s.vars[strings.Trim(name, "$@")]
		s.vars[strings.Trim(name, "$@")] = value{words: slices.Concat(old.words, v.words), list: old.list}
	case s.is(i+1, "=") && !s.is(i+2, "="):
		s.vars[strings.Trim(name, "$@")], _ = s.value(i + 2)
	case cmdline.In("in of", s.name(i+1)):
		v, _ := s.value(i + 2)
		v.each = v.list && !v.deep
		if v.deep {
			v = value{}
		}
		s.vars[strings.Trim(name, "$@")] = v
	case name == "git" && s.is(i+1, ".") && s.is(i+3, "(") && guard.IsGitCommand(s.name(i+2)): // GitPython, simple-git
		s.command("", append([]value{text1("git"), text1(s.name(i + 2))}, s.args(i+3)...))
	case s.is(i+1, "("), s.bare(i + 1):
		helper, defined := s.helpers[name]
		if defined = defined && !s.is(i-1, "."); defined && helper || !defined && s.counts && cmdline.In(s.lang.calls, name) {
			s.command(name, s.args(i+1))
		}
		s.writes(i)
	}
}

// bare reports whether the argument at token i may stand without brackets: system
// "git push".
func (s *scanner) bare(i int) bool {
	return i < len(s.tokens) && (strings.IndexByte("sil", s.tokens[i].kind) >= 0 || s.is(i, "*")) && (s.lang.names == "perl" || strings.HasPrefix(s.lang.names, "ruby"))
}

// runs reports whether the function whose parameters stand at token i runs commands:
// then a call of it does.
func (s *scanner) runs(i int) bool {
	for i = s.skip(i); i < len(s.tokens) && s.counts; i++ {
		switch name := s.name(i); {
		case s.tokens[i].first && name != "" || cmdline.In("def function", name):
			return false
		case cmdline.In(s.lang.calls, name) && s.is(i+1, "("):
			return true
		}
	}
	return false
}

// filled puts the values of variables into a text.
func (s *scanner) filled(text string) string {
	for _, name := range cmdline.Parts(text) {
		if v := s.vars[name]; v.words != nil && !v.each {
			text = strings.ReplaceAll(text, open(name), strings.Join(v.words, " "))
		}
	}
	return text
}

// skip passes over one token, or over a bracket with all that is in it.
func (s *scanner) skip(i int) int {
	for depth := 0; i < len(s.tokens); {
		if t := s.tokens[i]; t.kind == 'p' && strings.Contains("([{", t.text) {
			depth++
		} else if t.kind == 'p' && strings.Contains(")]}", t.text) {
			depth--
		}
		if i++; depth <= 0 {
			break
		}
	}
	return i
}

// args reads what stands in the bracket at token i, or without one the rest of the
// statement. Of named arguments (shell=True, {args: […]}) those count that are
// commands.
func (s *scanner) args(i int) (list []value) {
	end, inside := len(s.tokens), s.is(i, "(") || s.is(i, "[")
	if inside {
		end = s.skip(i) - 1
		i++
	}
	for i < end && len(list) < 64 {
		named := s.name(i) != "" && (s.is(i+1, "=") || s.is(i+1, ":")) && !s.is(i+2, ":")
		switch {
		case s.is(i, ";"), !inside && (s.tokens[i].kind == 'n' || s.is(i, "}") || cmdline.In("or and if unless while until do then end", s.name(i))):
			return list
		case named && cmdline.In("args cmd command", s.name(i)):
			i += 2
		case named:
			_, i = s.value(i + 2)
		case s.is(i, ","), s.is(i, "{"), s.is(i, "}"), s.tokens[i].kind == 'n':
			i++
		default:
			var v value
			v, i = s.value(i)
			list = append(list, v)
			for i < end && !s.is(i, ",") && !s.is(i, "}") && !s.is(i, ";") && (inside || s.tokens[i].kind != 'n') {
				i = s.skip(i) // what was not understood
			}
		}
	}
	return list
}

// value reads one expression: operands that are joined. It returns the index of what
// follows.
func (s *scanner) value(i int) (v value, next int) {
	v, i = s.operand(i)
	for i < len(s.tokens) && v.words != nil {
		var w value
		switch {
		case s.is(i, "+"), s.is(i, ".") && s.tokens[min(i+1, len(s.tokens)-1)].kind == 's': // perl, php
			w, i = s.operand(i + 1)
		case s.is(i, "%"):
			w, i = s.operand(i + 1)
			v.words[0], w.words = strings.ReplaceAll(v.words[0], "%s", strings.Join(append(w.words, open("value"))[:1], "")), []string{""}
		case s.tokens[i].kind == 's' && !v.list, s.tokens[i].kind == 'i' && strings.HasPrefix(s.lang.names, "awk"):
			w, i = s.operand(i)
		case s.tokens[i].kind == 'n' && i+1 < len(s.tokens) && s.tokens[i+1].kind == 's' && !s.tokens[i+1].first && !v.list:
			w, i = s.operand(i + 1)
		default:
			return v, i
		}
		switch {
		case v.list && w.list:
			v.words = slices.Concat(v.words, w.words)
		case w.words == nil:
			v.words[len(v.words)-1] += open("value")
		default:
			v.words[len(v.words)-1] += strings.Join(w.words, " ")
		}
	}
	return v, i
}

// operand reads one operand with the parts and brackets that follow it.
func (s *scanner) operand(i int) (v value, next int) {
	for i < len(s.tokens) && (cmdline.In("new await return my our let const var", s.name(i)) || s.tokens[i].kind == 'p' && strings.Contains(`*!&\.`, s.tokens[i].text)) {
		i++
	}
	if i >= len(s.tokens) {
		return v, i
	}
	last := ""
	switch t := s.tokens[i]; {
	case t.kind == 's':
		v, i = text1(s.filled(t.text)), i+1
	case t.kind == 'l':
		v, i = value{words: t.words, list: true}, i+1
	case s.is(i, "["), s.is(i, "("):
		items, end := s.args(i), s.skip(i)
		v = value{words: []string{}, list: true}
		for _, item := range items {
			if item.words == nil {
				item = text1(open("item"))
			}
			v.words, v.deep = append(v.words, item.words...), v.deep || item.list
		}
		if s.is(i, "(") && len(items) == 1 && !s.is(end-2, ",") {
			v = items[0]
		}
		i = end
	case t.kind == 'i':
		last, i = t.text, i+1
		v = s.vars[strings.Trim(last, "$@")]
		v.words = slices.Clone(v.words)
	default:
		return v, i
	}
	for i < len(s.tokens) {
		switch {
		case s.is(i, ".") && s.name(i+1) != "":
			if last = s.name(i + 1); v.list && v.words == nil || last != "" && !s.is(i+2, "(") {
				v = value{}
			}
			i += 2
		case s.is(i, "("):
			v, i = called(last, v, s.args(i)), s.skip(i)
		case s.is(i, "["):
			v, i = value{}, s.skip(i)
		default:
			return v, i
		}
	}
	return v, i
}

// called is the value of a call that only puts texts together: of a method of v, or
// of a function.
func called(name string, v value, args []value) value {
	first := append(args, value{})[0]
	switch {
	case name == "join" && v.words != nil && first.list: // " ".join(list)
		return text1(strings.Join(first.words, v.words[0]))
	case name == "join" && v.list && len(args) == 1: // list.join(" ")
		return text1(strings.Join(v.words, strings.Join(first.words, "")))
	case name == "join": // os.path.join
		var parts []string
		for _, a := range args {
			parts = append(parts, append(a.words, open("part"))[0])
		}
		return text1(path.Join(parts...))
	case cmdline.In("split strip trim format encode", name) && v.words != nil:
		return v
	case cmdline.In("split quote list str Path String", name):
		return first
	}
	return value{}
}

// command runs what the arguments of a call amount to.
func (s *scanner) command(name string, args []value) {
	if name == "open" { // perl: open(F, "-|", "git", "push"), open(F, "git push |")
		i := slices.IndexFunc(args, func(v value) bool { return len(v.words) > 0 && strings.Contains(v.words[0], "|") })
		if i < 0 {
			return
		}
		if args = slices.Clone(args[i:]); strings.Trim(args[0].words[0], "|- ") == "" {
			args = args[1:]
		} else {
			args[0] = text1(strings.Trim(args[0].words[0], "|- "))
		}
	}
	for len(args) > 1 && args[0].words == nil { // os.spawnlp(os.P_WAIT, …)
		args = args[1:]
	}
	if len(args) == 0 || len(args[0].words) == 0 {
		return
	}
	if args[0].each {
		for _, line := range args[0].words {
			s.nested(s.st, line, "a program runs it")
		}
		return
	}
	words, lone := []string{}, !args[0].list
	for i, a := range args {
		if i == 0 || a.words != nil && lone {
			words = append(words, a.words...)
		}
	}
	if len(words) > 1 && lone && (strings.HasPrefix(name, "execl") || strings.HasPrefix(name, "spawnl") || path.Base(words[0]) == path.Base(words[1])) {
		words = slices.Delete(words, 1, 2) // argv[0]
	}
	if _, own := s.helpers[name]; own && guard.IsGitCommand(words[0]) { // git("reset", "--hard")
		words = append([]string{"git"}, words...)
	}
	if lone && (len(words) == 1 || strings.Contains(words[0], " ")) {
		s.nested(s.st, words[0], "a program runs it")
	} else {
		s.run(s.st, words)
	}
}

// fileWriters are functions that write, move or delete the files that are named in
// their brackets, or in those before their dot; ownWriters those that other things
// than files have, too.
const (
	fileWriters = `rmtree removeSync unlink unlinkSync rmdir rename renameSync rmSync rm rm_rf rm_r writeFileSync writeFile appendFileSync mkdirSync makedirs
 mkdir symlink chmod truncate write_text write_bytes touch outputFileSync file_put_contents`
	ownWriters = "remove delete move write"
	copiers    = "copy copyfile copytree copyFileSync cpSync cp cp_r link symlinkSync"
	fileOwners = "os fs fsp promises File FileUtils shutil Dir IO"
)

// writes looks at the call at token i for files in .git.
func (s *scanner) writes(i int) {
	name, owned := s.name(i), s.is(i-1, ".") && cmdline.In(fileOwners, s.name(i-2))
	var paths []string
	for _, a := range s.args(i + 1) {
		paths = append(paths, append(a.words, "")[0])
	}
	switch {
	case len(paths) == 0 && !s.is(i-2, ")"):
		return
	case name == "open" && s.lang.names == "perl":
		for j, p := range paths {
			if to := strings.TrimLeft(p, "+"); strings.HasPrefix(to, ">") {
				paths = append(paths[:j], strings.Trim(to, "> "), paths[len(paths)-1])
				break
			}
			paths[j] = ""
		}
	case name == "open" || name == "fopen":
		if len(paths) < 2 || !strings.ContainsAny(paths[1], "wax+") {
			return
		}
	case cmdline.In(copiers, name):
		paths = paths[len(paths)-1:]
	case !cmdline.In(fileWriters, name) && !(owned && cmdline.In(ownWriters, name)):
		return
	}
	if s.is(i-1, ".") && s.is(i-2, ")") { // Path('.git/HEAD').unlink(), (Path('.git') / 'HEAD').unlink()
		for j := i - 3; j >= 0 && s.tokens[j].kind != 'n'; j-- {
			if s.tokens[j].kind == 's' {
				paths = append(paths, s.tokens[j].text)
			}
		}
	}
	for _, p := range paths {
		if !strings.ContainsAny(p, " \n") {
			s.protect(s.st, s.lang.names, p)
		}
	}
}

// tokenize reads program text into names, texts and punctuation. It knows no
// grammar: a regular expression that holds a quote may confuse it, then texts are
// missed, never invented as commands.
func tokenize(l *language, text string) (out []token) {
	is := func(name string) bool { return strings.HasPrefix(l.names, name) }
	for i := 0; i < len(text) && len(out) < 50_000; {
		rest := text[i:]
		n := strings.IndexFunc(rest+" ", func(c rune) bool { return !isName(c) })
		name, after := rest[:n], rest[n:]+" "
		t, end := token{kind: 'i', text: name, first: i == 0 || text[i-1] == '\n'}, n
		switch {
		case is("perl") && cmdline.In("q qq qw qx", name) && strings.IndexByte("([{</|!", after[0]) >= 0:
			t, end = l.operator(name, after)
			end += n
		case is("ruby") && rest[0] == '%' && len(rest) > 2 && strings.IndexByte("xwWqQi", rest[1]) >= 0 && strings.IndexByte("([{<|!/", rest[2]) >= 0:
			t, end = l.operator(rest[1:2], rest[2:])
			end += 2
		case n > 0 && n <= 2 && is("python") && strings.IndexByte(`"'`, after[0]) >= 0 && strings.Trim(strings.ToLower(name), "rbfu") == "":
			t.kind = 's'
			if t.text, end = l.literal(after); strings.ContainsAny(name, "fF") {
				t.text = interpolate(t.text, "{")
			}
			end += n
		case n > 0:
		case strings.HasPrefix(rest, l.comment):
			line, _, _ := strings.Cut(rest, "\n")
			i += len(line)
			continue
		case strings.IndexByte("'\"`", rest[0]) >= 0:
			t.kind = 's'
			if t.text, end = l.literal(rest); rest[0] == '`' && (!is("node") || len(out) > 0 && out[len(out)-1].text == "$") { // zx: $`git push`
				t.kind = '`'
			}
			if rest[0] == '`' || rest[0] == '"' && !is("node") {
				t.text = interpolate(t.text, l.interp)
			}
		case rest[0] == '\n':
			t, end = token{kind: 'n'}, 1
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			i++
			continue
		default:
			t, end = token{kind: 'p', text: rest[:1]}, 1
		}
		out = append(out, t)
		i += end
	}
	return out
}

func isName(c rune) bool {
	return c == '_' || c == '$' || c == '@' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// operator is qx(…), qw(…), %x{…}, %w[…]; rest begins with the bracket. end is how
// much of rest it takes.
func (l *language) operator(name, rest string) (t token, end int) {
	closing := rest[0]
	if i := strings.IndexByte("([{<", rest[0]); i >= 0 {
		closing = ")]}>"[i]
	}
	end = strings.IndexByte(rest[1:], closing)
	if end < 0 {
		return token{kind: 'n'}, len(rest)
	}
	body := rest[1 : end+1]
	switch name {
	case "qx", "x":
		t = token{kind: '`', text: interpolate(body, l.interp)}
	case "qw", "w", "W", "i":
		t = token{kind: 'l', words: strings.Fields(body)}
	default:
		t = token{kind: 's', text: interpolate(body, l.interp)}
	}
	return t, end + 2
}

// literal reads a text from its quote, Python's triple quotes included. end is how
// much of rest it takes.
func (l *language) literal(rest string) (text string, end int) {
	if triple := strings.Repeat(rest[:1], 3); l.comment == "#" && strings.HasPrefix(rest, triple) {
		text, _, _ = strings.Cut(rest[3:], triple)
		return text, min(len(text)+6, len(rest))
	}
	var b strings.Builder
	for end = 1; end < len(rest) && rest[end] != rest[0]; end++ {
		if rest[end] != '\\' || end+1 == len(rest) {
			b.WriteByte(rest[end])
			continue
		}
		end++
		if i := strings.IndexByte("nt\n", rest[end]); i >= 0 {
			b.WriteString([]string{"\n", "\t", ""}[i])
		} else {
			b.WriteByte(rest[end])
		}
	}
	return b.String(), min(end+1, len(rest))
}

// interpolate leaves open what a text takes from variables: $x, @x, ${x}, #{x}, {x}.
func interpolate(s, begins string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		name := ""
		if strings.IndexByte(begins, s[i]) >= 0 {
			rest := s[i+1:]
			if begins == "{" {
				rest = s[i:]
			}
			if body, _, ok := strings.Cut(rest, "}"); ok && strings.HasPrefix(rest, "{") {
				name = body[1:]
				i = len(s) - len(rest) + len(body)
			} else if begins[0] == '$' {
				name = rest[:strings.IndexFunc(rest+" ", func(c rune) bool { return !isName(c) })]
				i += len(name)
			}
		}
		if name != "" {
			b.WriteString(open(name))
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
