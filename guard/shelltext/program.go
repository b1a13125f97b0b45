package shelltext

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// language is what must be known of a programming language to find the commands
// that a one-line program starts. There is one rule for all: a text, or a list of
// texts, that is handed to one of these functions is a command. What a program
// computes otherwise is not followed.
type language struct {
	names   string // of interpreters, without version numbers
	options string // option table
	program string // options whose value is program text; "" is the first operand
	comment string // begins a comment
	calls   string // functions that run a command
	needs   string // calls count only in a program that has one of these words in it
	filled  string // an expression for the variables in a text
	quotes  string // the quotes of texts that variables are filled into
}

var languages = []language{
	{names: "python pypy ipython", options: "c= m= W= X=", program: "c", comment: "#", filled: `\{[^{}]*\}`,
		calls: `system popen run call check_call check_output Popen getoutput getstatusoutput execv execvp execl
 execlp execlpe execve execvpe spawnl spawnlp spawnlpe spawnv spawnvp spawnvpe posix_spawn posix_spawnp
 create_subprocess_shell create_subprocess_exec sh spawn`},
	{names: "perl", options: "e= E= M= m= I= i? F?", program: "e E", comment: "#", filled: `[$@]\{?\w+\}?`,
		quotes: "\"`", calls: "system exec qx readpipe open"},
	{names: "ruby jruby", options: "e= r= I= C= W? i?", program: "e", comment: "#", filled: `#\{[^{}]*\}`,
		quotes: "\"`",
		calls:  "system exec spawn popen popen3 capture2 capture2e capture3 sh"},
	{names: "node nodejs bun deno tsx ts-node zx", options: "e/eval= p/print= r/require= import= input-type= loader=",
		program: "eval print", comment: "//",
		filled: `\$\{[^{}]*\}`, quotes: "`", needs: "child_process execa zx shelljs Bun Deno",
		calls: "execSync exec spawn spawnSync execFile execFileSync execa execaSync execaCommand command Command"},
	{names: "php", options: "r= B= E= d= c= z= F=", program: "r B E", comment: "//", filled: `\$\w+`, quotes: "\"`",
		calls: "system exec shell_exec passthru popen proc_open"},
	{names: "awk gawk mawk nawk", options: "F= v= f= i=", comment: "#", calls: "system"},
	{names: "lua luajit", options: "e= l=", program: "e", comment: "--", calls: "execute popen"},
	{names: "R Rscript", options: "e=", program: "e", comment: "#", calls: "system system2"},
}

// is reports whether this is the language of an interpreter.
func (l *language) is(name string) bool { return cmdline.In(l.names, name) }

// languageOf returns the language of an interpreter, or nil.
func languageOf(program string) *language {
	program = strings.TrimRight(program, "0123456789.")
	if i := slices.IndexFunc(languages, func(l language) bool { return l.is(program) }); i >= 0 {
		return &languages[i]
	}
	return nil
}

// interpreter looks for a program in an interpreter's arguments or input.
func (c *command) interpreter(l *language) {
	args := slices.Clone(c.args)
	for i, a := range args {
		if l.is("node") && (a == "eval" || a == "-pe" || a == "-ep") { // deno eval; -p -e
			args[i] = "-e"
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
	text := strings.Join(texts, "\n")
	switch {
	case text != "":
	case p.Has("m") || p.Help || slices.Contains(args, "--version") || slices.Contains(args, "-V"):
	case len(rest) > 0 && rest[0] != "-":
		text = c.Files[c.st.path(rest[0])]
		if text == "" {
			c.Undecided(c.text(), "a script file")
		}
	case c.st.stdin != nil:
		text = c.st.input()
	}
	if text != "" {
		c.Step(text, c.name+" program")
		c.scan(c.st, l, text)
	}
}

// scan looks through program text for calls that run a command or write into .git.
func (r *reader) scan(st *state, l *language, text string) {
	leave, ok := r.enter()
	if !ok {
		return
	}
	defer leave()
	s := &scanner{reader: r, st: st.program(), lang: l, tokens: l.tokens(text), vars: map[string][]string{},
		helpers: map[string]bool{}}
	s.st.stdin = nil
	s.counts = l.needs == "" || slices.ContainsFunc(strings.Fields(l.needs),
		func(n string) bool { return strings.Contains(text, n) })
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
	counts  bool                // calls run commands in this program
	vars    map[string][]string // the words that names were set to
	helpers map[string]bool     // functions that the program defines: do they run commands?
}

// token is one token of program text: a name, a text, a list such as qw(a b), a
// command in backquotes, punctuation, or the end of a line.
type token struct {
	kind  byte // 'i', 's', 'l', '`', 'p' or 'n'
	text  string
	first bool // it begins its line
}

func (s *scanner) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == 'p' && strings.Contains(text, s.tokens[i].text)
}

func (s *scanner) kind(i int) byte {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].kind
}

// name is the name at token i, or "".
func (s *scanner) name(i int) string {
	if s.kind(i) != 'i' {
		return ""
	}
	return strings.TrimLeft(s.tokens[i].text, "$@")
}

// at looks at the token at i: a command in backquotes, what a name is set to, a
// function's definition, a call.
func (s *scanner) at(i int) {
	name := s.name(i)
	helper, defined := s.helpers[name]
	defined = defined && !s.is(i-1, ".")
	switch {
	case s.kind(i) == '`':
		s.nested(s.st, s.fill(s.tokens[i].text), "a program runs it")
	case name == "":
	case cmdline.In("def function sub", name):
		s.helpers[s.name(i+1)] = s.runs(i + 2)
	case s.is(i+1, "=") && s.is(i+2, "(") && s.is(s.skip(i+2), "="): // run = (c) => …
		s.helpers[name] = s.runs(i + 2)
	case s.is(i+1, "+") && s.is(i+2, "=") && s.is(i+3, "["):
		s.set(name, slices.Concat(s.vars[name], s.words(i+3, s.end(i+3))))
	case s.is(i+1, "+") && s.is(i+2, "="):
		s.set(name, []string{strings.Join(slices.Concat(s.vars[name], s.words(i+3, s.end(i+3))), "")})
	case s.is(i+1, "=") && !s.is(i+2, "="), cmdline.In("in of", s.name(i+1)):
		s.set(name, s.words(i+2, s.end(i+2)))
	case name == "git" && s.is(i+1, ".") && s.is(i+3, "(") && guard.IsGitCommand(s.name(i+2)): // GitPython, simple-git
		s.run(s.st, slices.Concat([]string{"git", s.name(i + 2)}, s.words(i+4, s.skip(i+3)-1)))
	case s.is(i+1, "("), s.bare() && (s.kind(i+1) != 0 && strings.IndexByte("sil", s.kind(i+1)) >= 0 || s.is(i+1, "*")):
		args := s.args(i + 1)
		if helper && defined || !defined && s.counts && cmdline.In(s.lang.calls, name) {
			s.command(name, args)
		}
		s.writes(i, args)
	}
}

// set gives a name the words that it stands for from here on.
func (s *scanner) set(name string, words []string) {
	size := 0
	for _, w := range words {
		size += len(w)
	}
	if size > maxValue { // doubled over and over
		words = []string{open(name)}
	}
	s.vars[name] = words
}

// bare reports whether arguments may stand without brackets: system "git push".
func (s *scanner) bare() bool { return s.lang.is("perl") || s.lang.is("ruby") }

// runs reports whether the function whose parameters stand at token i runs commands:
// then a call of it does.
func (s *scanner) runs(i int) bool {
	for i = s.skip(i); i < len(s.tokens) && s.counts; i++ {
		switch name := s.name(i); {
		case s.tokens[i].first && name != "", cmdline.In("def function", name):
			return false
		case cmdline.In(s.lang.calls, name) && s.is(i+1, "("):
			return true
		}
	}
	return false
}

// fill puts the values of variables into a text.
func (s *scanner) fill(text string) string {
	for _, name := range cmdline.Parts(text) {
		if v := s.vars[name]; v != nil {
			text = strings.ReplaceAll(text, open(name), strings.Join(v, " "))
		}
	}
	return text
}

// skip passes over one token, or over a bracket with all that is in it.
func (s *scanner) skip(i int) int {
	for depth := 0; i < len(s.tokens); {
		if s.is(i, "([{") {
			depth++
		} else if s.is(i, ")]}") {
			depth--
		}
		if i++; depth <= 0 {
			break
		}
	}
	return i
}

// end is where the expression at token i ends, and with it the statement.
func (s *scanner) end(i int) int {
	for i < len(s.tokens) && s.kind(i) != 'n' && !s.is(i, ";:)]}") &&
		!cmdline.In("or and if unless while until do then end", s.name(i)) {
		i = s.skip(i)
	}
	return i
}

// args are the words in the bracket at token i, or without one those of the rest of
// the statement.
func (s *scanner) args(i int) []string {
	if s.is(i, "(") {
		return s.words(i+1, s.skip(i)-1)
	}
	return s.words(i, s.end(i))
}

// textFunctions only put texts together.
const textFunctions = "join split strip trim format encode quote list str Path String"

// words are the texts between two tokens, in their order and however they are
// nested: the words of a command. Texts with no more than an operator between them
// are one word, a name stands for what it was set to, and anything else is open. Of
// named arguments (shell=True, {args: […]}) those count that are commands.
func (s *scanner) words(i, end int) (out []string) {
	goesOn := false // the next text belongs to the last word
	bracket := 0    // the words before the last comma or bracket
	add := func(texts ...string) {
		if goesOn && len(out) > 0 && len(texts) > 0 {
			before, after, _ := strings.Cut(out[len(out)-1], "%s")
			out[len(out)-1] = before + texts[0] + after
			texts = texts[1:]
		}
		out, goesOn = append(out, texts...), true
	}
	for ; i < end && len(out) < 64; i++ {
		name := s.name(i)
		v := s.vars[name]
		switch {
		case s.kind(i) == 's':
			add(s.fill(s.tokens[i].text))
		case s.kind(i) == 'l':
			add(strings.Fields(s.tokens[i].text)...)
		case cmdline.In("function lambda", name), s.is(i, "=") && s.is(i+1, ">"): // (error, out) => …
			return out[:min(bracket, len(out))]
		case s.is(i, ",[](){}"):
			goesOn = false
			if s.is(i, ",(") {
				bracket = len(out)
			}
		case name == "", cmdline.In("new await return my our let const var environ env", name):
		case s.is(i+1, "=:") && !s.is(i+2, ":="):
			for i++; !cmdline.In("args cmd command", name) && i < end && !s.is(i, ","); {
				i = s.skip(i)
			}
			goesOn = false
		case s.is(i+1, "(") && cmdline.In(textFunctions, name):
		case s.is(i+1, "("):
			if !s.is(i-1, ".") || s.kind(i-2) == 'i' && s.vars[s.name(i-2)] == nil {
				add(open(name))
			}
			i = s.skip(i+1) - 1
		case v != nil && !s.is(i-1, "."):
			add(v...)
		case !s.is(i+1, "."):
			add(open(name))
		}
	}
	return out
}

// command runs what the words of a call amount to.
func (s *scanner) command(name string, words []string) {
	if name == "open" { // perl: open(F, "-|", "git", "push"), open(F, "git push |")
		i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "|") })
		if i < 0 {
			return
		}
		words = slices.Clone(words[i:])
		words[0] = strings.Trim(words[0], "|- ")
	}
	blank := func(w string) bool {
		return strings.TrimSpace(w) == "" || !cmdline.Known(w) && len(cmdline.Printable(w)) < 4
	}
	for len(words) > 1 && blank(words[0]) { // os.spawnlp(os.P_WAIT, …), " ".join(…)
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	words = slices.Clone(words)
	words[0] = strings.TrimSpace(words[0])
	if len(words) > 1 && (strings.HasPrefix(name, "execl") || strings.HasPrefix(name, "spawnl") ||
		path.Base(words[0]) == path.Base(words[1])) {
		words = slices.Delete(words, 1, 2) // argv[0]
	}
	if _, own := s.helpers[name]; own && guard.IsGitCommand(words[0]) { // git("reset", "--hard")
		words = append([]string{"git"}, words...)
	}
	if len(words) > 1 && !strings.Contains(words[0], " ") {
		s.run(s.st, words)
		return
	}
	for i, w := range words {
		if i == 0 || strings.Contains(w, " ") {
			s.nested(s.st, w, "a program runs it")
		}
	}
}

// fileWriters are functions that write, move or delete the files that are named in
// their brackets, or in those before their dot; ownWriters those that other things
// than files have, too; copiers write the last of their files.
const (
	fileWriters = `rmtree removeSync unlink unlinkSync rmdir rename renameSync rmSync rm rm_rf rm_r writeFileSync
 writeFile appendFileSync mkdirSync makedirs mkdir symlink chmod truncate write_text write_bytes touch outputFileSync
 file_put_contents`
	ownWriters = "remove delete move write"
	copiers    = "copy copyfile copytree copyFileSync cpSync cp cp_r link symlinkSync"
	fileOwners = "os fs fsp promises File FileUtils shutil Dir IO"
)

// writes looks at the call at token i for files in .git.
func (s *scanner) writes(i int, paths []string) {
	name := s.name(i)
	switch last := max(len(paths)-1, 0); {
	case cmdline.In("open fopen", name): // open(path, "w"), open(F, ">", path), open(F, ">path")
		mode := slices.IndexFunc(paths, func(p string) bool {
			return len(p) < 4 && strings.ContainsAny(p, "wax+>") || strings.HasPrefix(p, ">")
		})
		if mode < 0 {
			return
		}
		paths[mode] = strings.TrimLeft(paths[mode], "> ")
	case cmdline.In(copiers, name):
		paths = paths[last:]
	case !cmdline.In(fileWriters, name) && !(cmdline.In(ownWriters, name) && s.is(i-1, ".") &&
		cmdline.In(fileOwners, s.name(i-2))):
		return
	}
	if s.is(i-1, ".") && s.is(i-2, ")") { // Path('.git/HEAD').unlink(), (Path('.git') / 'HEAD').unlink()
		for j := i - 3; j >= 0 && s.kind(j) != 'n'; j-- {
			if s.kind(j) == 's' {
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

// tokens reads program text into names, texts and punctuation. It knows no grammar:
// a regular expression that holds a quote may confuse it, then texts are missed,
// never invented as commands.
func (l *language) tokens(text string) (out []token) {
	for i := 0; i < len(text) && len(out) < 50_000; {
		rest := text[i:]
		n := strings.IndexFunc(rest+" ", func(c rune) bool {
			return c != '_' && c != '$' && c != '@' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
				(c < '0' || c > '9') && c < 0x80
		})
		name, after := rest[:n], rest[n:]+"  "
		t, end := token{kind: 'i', text: name, first: i == 0 || text[i-1] == '\n'}, n
		operator := l.is("perl") && cmdline.In("q qq qw qx", name) || l.is("ruby") && n > 0 && i > 0 &&
			text[i-1] == '%' && strings.IndexByte("xwWqQi", name[0]) >= 0
		switch {
		case operator && strings.IndexByte("([{<|!/", after[0]) >= 0:
			closing := strings.NewReplacer("(", ")", "[", "]", "{", "}", "<", ">").Replace(after[:1])
			body, _, _ := strings.Cut(after[1:], closing)
			end = min(n+len(body)+2, len(rest))
			t = token{kind: map[byte]byte{'x': '`', 'w': 'l', 'i': 'l'}[name[len(name)-1]|0x20], text: l.fill(body)}
			if t.kind == 0 {
				t.kind = 's'
			}
		case l.is("python") && n > 0 && n <= 2 && strings.IndexByte(`"'`, after[0]) >= 0 &&
			strings.Trim(strings.ToLower(name), "rbfu") == "":
			t.kind = 's'
			if t.text, end = l.literal(after); strings.ContainsAny(name, "fF") {
				t.text = l.fill(t.text)
			}
			end += n
		case n > 0:
		case strings.HasPrefix(rest, l.comment):
			line, _, _ := strings.Cut(rest, "\n")
			i += len(line)
			continue
		case strings.IndexByte("'\"`", rest[0]) >= 0:
			t.kind = 's'
			t.text, end = l.literal(rest)
			if rest[0] == '`' && (!l.is("node") || len(out) > 0 && out[len(out)-1].text == "$") { // zx: $`git push`
				t.kind = '`'
			}
			if strings.IndexByte(l.quotes, rest[0]) >= 0 {
				t.text = l.fill(t.text)
			}
		case rest[0] == '\n':
			t, end = token{kind: 'n'}, 1
		case strings.IndexByte(" \t\r", rest[0]) >= 0:
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

// fill leaves open what a text takes from variables.
func (l *language) fill(text string) string {
	if l.filled == "" || !strings.ContainsAny(text, "{$@") {
		return text
	}
	return regexp.MustCompile(l.filled).ReplaceAllStringFunc(text,
		func(v string) string { return open(strings.Trim(v, "#$@{}")) })
}

// literal reads a text from its quote, Python's triple quotes included. end is how
// much of rest it takes.
func (l *language) literal(rest string) (text string, end int) {
	if triple := strings.Repeat(rest[:1], 3); l.is("python") && strings.HasPrefix(rest, triple) {
		text, _, _ = strings.Cut(rest[3:], triple)
		return text, min(len(text)+6, len(rest))
	}
	var b strings.Builder
	for end = 1; end < len(rest) && rest[end] != rest[0]; end++ {
		c := rest[end]
		if c == '\\' && end+1 < len(rest) {
			end++
			if c = rest[end]; c == '\n' {
				continue
			}
			if i := strings.IndexByte("nt", c); i >= 0 {
				c = "\n\t"[i]
			}
		}
		b.WriteByte(c)
	}
	return b.String(), min(end+1, len(rest))
}
