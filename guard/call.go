package guard

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/internal/text"
)

func (c *checker) callExpr(st *state, x *syntax.CallExpr) string {
	if len(x.Args) == 0 {
		for _, a := range x.Assigns {
			c.assign(st, a)
			if v := st.vars[a.Name.Value]; v.array == nil {
				c.step(a.Name.Value+"="+v.value, "a variable")
			}
		}
		st.status = statusOpen
		return ""
	}
	words := c.fields(st, x.Args)
	if len(x.Assigns) == 0 {
		return c.run(st, words)
	}
	sub := st.clone() // variables before a command hold for that command
	for _, a := range x.Assigns {
		c.assign(sub, a)
		sub.export(a.Name.Value)
	}
	out := c.run(sub, words)
	for _, a := range x.Assigns {
		if old, ok := st.vars[a.Name.Value]; ok {
			sub.vars[a.Name.Value] = old
		} else {
			delete(sub.vars, a.Name.Value)
		}
	}
	*st = *sub // what a builtin or function set stays
	return out
}

// run looks at one command, its words expanded, and returns what it prints.
func (c *checker) run(st *state, words []string) string {
	st.status, st.asked = statusOpen, false
	if len(words) == 0 || words[0] == "" || !c.spend() {
		return ""
	}
	name := words[0]
	if body, ok := st.funcs[name]; ok {
		return c.function(st, body, words)
	}
	if text, ok := st.aliases[name]; ok {
		n := st.clone()
		delete(n.aliases, name)
		return c.nested(n, text+" "+quoteWords(words[1:]), "shell alias "+name)
	}
	return c.program(st, words)
}

func (c *checker) function(st *state, body *syntax.Stmt, words []string) string {
	if !c.enter() {
		return unknownValue(kindOpen, "function")
	}
	defer c.leave()
	saved := st.params
	st.params = words[1:]
	st.returns++
	out := c.stmt(st, body)
	st.returns--
	st.params = saved
	if st.leaving {
		st.ended, st.leaving = false, false
	}
	return out
}

// program looks at a command that is no function: git, a builtin, a wrapper
// around another command, a tool that writes files.
func (c *checker) program(st *state, words []string) string {
	if git, ok := gitProgram(words[0]); ok {
		return c.git(st, slices.Concat([]string{"git"}, git, words[1:]))
	}
	if real, ok := c.otherName(st, words[0]); ok {
		c.step(strings.Join(words, " "), "another name of "+real)
		return c.program(st, append([]string{real}, words[1:]...))
	}
	base := strings.TrimSuffix(path.Base(words[0]), ".exe")
	if out, ok := c.companion(st, base, words); ok {
		return out
	}
	if !isKnown(base) && len(words) > 2 && words[1] == "=" { // PowerShell: $x = git status
		return c.run(withoutShell(st), words[2:])
	}
	if !isKnown(base) {
		c.undecided(strings.Join(words, " "), "which program this is")
		return unknownValue(kindOpen, "command")
	}
	if text, ok := c.files[under(st.dir, words[0])]; ok && strings.Contains(words[0], "/") {
		c.step(words[0], "a script that this text wrote")
		return c.script(st, text, words)
	}
	if out, ok := c.builtin(st, base, words); ok {
		return out
	}
	if out, ok := c.wrapped(st, base, words); ok {
		return out
	}
	if out, ok := c.textTool(st, base, words[1:]); ok {
		c.step(strings.Join(words, " "), "only text")
		return out
	}
	c.writers(st, base, words[1:])
	if out := c.code(st, base, words[1:]); out != "" {
		return out
	}
	if strings.Contains(words[0], "/") && path.Dir(words[0]) != "/bin" && path.Dir(words[0]) != "/usr/bin" {
		c.undecided(strings.Join(words, " "), "a program or script of its own")
	}
	c.step(strings.Join(words, " "), "no git command")
	return c.listing(base, words)
}

// shownDir is a directory for people; one below an unknown start is told from
// there.
func shownDir(dir string) string {
	if rest, ok := strings.CutPrefix(dir, virtualDir()); ok {
		dir = "." + rest
	}
	return printable(dir)
}

// otherName finds the program that the text itself copied or linked to a name.
func (c *checker) otherName(st *state, word string) (string, bool) {
	if strings.Contains(word, "/") {
		real, ok := c.renamed[under(st.dir, word)]
		return real, ok
	}
	for to, real := range c.renamed { // found in PATH
		if path.Base(to) == word {
			return real, true
		}
	}
	return "", false
}

// quoteWords puts words into single quotes, so that a shell reads them as they
// are.
func quoteWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text.QuoteSingle(w))
	}
	return b.String()
}

// listing is the output of a program that is not looked into.
func (c *checker) listing(base string, words []string) string {
	if base == "ls" { // "ls -d .git", "ls .git/hooks/*"
		for _, w := range words[1:] {
			if namesGitDir(path.Base(w)) && slices.Contains(words, "-d") || strings.Contains(w, ".git/") && strings.Contains(w, "*") {
				return w + "\n"
			}
		}
	}
	switch base {
	case "ls", "find", "fd", "fdfind", "tree", "locate":
		return unknownValue(kindPaths, base)
	case "rg", "grep", "egrep", "fgrep", "ag", "ack":
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "lL") || w == "--files-with-matches" || w == "--files" {
				return unknownValue(kindPaths, base)
			}
		}
	}
	return unknownValue(kindOpen, base)
}

// builtin runs the shell's own commands.
func (c *checker) builtin(st *state, base string, words []string) (string, bool) {
	args := words[1:]
	switch base {
	case "cd", "chdir", "pushd":
		to := ""
		for _, a := range args {
			if a == "-" || !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
				to = a
				break
			}
		}
		st.cd(to)
		c.step(strings.Join(append([]string{base}, args...), " "), "goes to "+shownDir(st.dir))
	case "popd":
		st.cd("-")
	case "exit", "logout":
		st.ended = true
		if len(args) == 1 {
			st.status = statusFalse
			if strings.Trim(args[0], "0") == "" {
				st.status = statusTrue
			} else if !isKnown(args[0]) {
				st.status = statusOpen
			}
		}
	case "return":
		if st.returns > 0 { // elsewhere the shell complains and goes on
			st.ended, st.leaving = true, true
		}
	case "true", ":":
		st.status = statusTrue
	case "false":
		st.status = statusFalse
	case "eval":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		c.step(strings.Join(words, " "), "eval")
		return c.shell(st, strings.Join(args, " ")), true
	case ".", "source":
		return c.source(st, words), true
	case "unset":
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				st.unset(a)
			}
		}
	case "set":
		st.setParams(args)
	case "shift":
		if len(st.params) > 0 {
			st.params = st.params[1:]
		}
	case "alias":
		for _, a := range args {
			if k, v, ok := strings.Cut(a, "="); ok {
				st.aliases[k] = v
			}
		}
	case "unalias":
		for _, a := range args {
			delete(st.aliases, a)
		}
	default:
		return c.builtinData(st, base, args)
	}
	return "", true
}

// setParams is the set builtin: its operands become $1, $2, ….
func (st *state) setParams(args []string) {
	for len(args) > 0 && args[0] != "" && strings.IndexByte("-+", args[0][0]) >= 0 {
		a := args[0]
		args = args[1:]
		if a == "--" {
			st.params = args
			return
		}
		if strings.HasSuffix(a, "o") && len(args) > 0 { // -o pipefail
			args = args[1:]
		}
	}
	if len(args) > 0 {
		st.params = args
	}
}

// builtinData goes on with the builtins that set variables or only look.
func (c *checker) builtinData(st *state, base string, args []string) (string, bool) {
	switch base {
	case "export", "declare", "typeset", "local", "readonly": // reached through "command" or "builtin"
		for _, a := range args {
			if k, v, ok := strings.Cut(a, "="); ok {
				st.set(k, v)
				st.export(k)
			}
		}
	case "trap":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			c.nested(st, args[0], "trap runs it")
			if len(c.traps) < maxRounds {
				c.traps = append(c.traps, args[0])
			}
		}
	case "read":
		c.readVars(st, args)
	case "mapfile", "readarray":
		for _, a := range newSpec("d= n= O= s= t u= C= c=").parse(args, false).args {
			v := variable{array: []string{unknownValue(st.stdinKind(), a)}}
			if st.stdin != nil && isKnown(*st.stdin) {
				v.array = strings.Split(strings.TrimRight(*st.stdin, "\n"), "\n")
			}
			v.value = v.array[0]
			st.vars[a] = v
		}
	case "type", "whence", "where":
		if len(args) == 2 && (args[0] == "-p" || args[0] == "-P") {
			return "/usr/bin/" + args[1] + "\n", true
		}
	case "test", "[":
		st.status = testStatus(args)
		st.asked = slices.ContainsFunc(args, func(a string) bool { return path.Base(a) == ".git" })
	case "hash", "jobs", "wait", "ulimit", "umask", "times", "kill", "disown", "bg", "fg", "shopt", "setopt", "complete", "help", "man", "whereis":
	default:
		return "", false
	}
	return "", true
}

func (st *state) stdinKind() byte {
	if st.stdin != nil {
		return kindOr(*st.stdin)
	}
	return kindOpen
}

// readVars is the read builtin: the next line of a known input, else something
// of the input's kind.
func (c *checker) readVars(st *state, args []string) {
	p := newSpec("a= d= i= n= N= p= t= u= r s e").parse(args, false)
	names := p.args
	line := unknownValue(st.stdinKind(), "read")
	if st.stdin != nil && isKnown(*st.stdin) {
		var rest string
		if *st.stdin == "" {
			st.status = statusFalse
		}
		line, rest, _ = strings.Cut(*st.stdin, "\n")
		*st.stdin = rest
	}
	ifs := st.ifs()
	if a := p.last("a"); a != "" {
		v := variable{array: []string{line}}
		if isKnown(line) {
			v.array = strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(ifs, r) })
		}
		if len(v.array) > 0 {
			v.value = v.array[0]
		}
		st.vars[a] = v
		return
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	for i, n := range names {
		line = strings.Trim(line, ifs)
		if i == len(names)-1 {
			st.set(n, line)
			break
		}
		word, rest := line, ""
		if j := strings.IndexAny(line, ifs); j >= 0 {
			word, rest = line[:j], line[j+1:]
		}
		if !isKnown(line) {
			word, rest = line, line
		}
		st.set(n, word)
		line = rest
	}
}
