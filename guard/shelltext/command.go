package shelltext

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// call is a simple command with the variables before it.
func (r *reader) call(st *state, x *syntax.CallExpr) string {
	if len(x.Args) == 0 {
		for _, a := range x.Assigns {
			st.assign(a)
			r.Step(a.Name.Value+"="+st.Get(a.Name.Value).String(), "a variable")
		}
		return ""
	}
	words := st.fields(x.Args...)
	if len(x.Assigns) == 0 {
		return r.run(st, words)
	}
	sub := st.clone() // variables before a command hold for that command
	for _, a := range x.Assigns {
		sub.assign(a)
		sub.export(a.Name.Value)
	}
	out := r.run(sub, words)
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
func (r *reader) run(st *state, words []string) string {
	st.status, st.asked = statusOpen, false
	if len(words) == 0 || words[0] == "" || !r.spend() {
		return ""
	}
	if body, ok := st.funcs[words[0]]; ok {
		leave, ok := r.enter()
		if !ok {
			return open("function")
		}
		defer leave()
		return st.returning(words[1:], func() string { return r.stmt(st, body) })
	}
	if text, ok := st.aliases[words[0]]; ok {
		n := st.clone()
		delete(n.aliases, words[0])
		for _, w := range words[1:] {
			text += " '" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		return r.nested(n, text, "shell alias "+words[0])
	}
	return r.program(st, words)
}

// command is one command whose words are expanded.
type command struct {
	*reader
	st   *state
	name string   // the program, its folder left out
	line []string // the words as they stand
	args []string // those after the program
}

// program looks at a command that is no function: git, a builtin, a wrapper
// around another command, a tool that writes files, an interpreter.
func (r *reader) program(st *state, words []string) string {
	if sub, ok := guard.Program(words[0]); ok {
		return r.git(st, slices.Concat([]string{"git"}, sub, words[1:]))
	}
	c := &command{r, st, strings.TrimSuffix(path.Base(words[0]), ".exe"), words, words[1:]}
	switch {
	case c.name == "hub" && len(words) > 1 && guard.IsGitCommand(words[1]): // hub COMMAND is git COMMAND
		return r.git(st, append([]string{"git"}, words[1:]...))
	case !cmdline.Known(c.name) && len(words) > 2 && words[1] == "=": // PowerShell: $x = git status
		return r.run(st.program(), words[2:])
	case !cmdline.Known(c.name):
		r.Undecided(c.text(), "which program this is")
		return open("command")
	}
	if text, ok := r.Files[st.path(words[0])]; ok && strings.Contains(words[0], "/") {
		return c.script(text, words)
	}
	if c.runsProject() {
		r.Undecided(c.text(), "what the project's own files have it run")
	}
	for _, kind := range []func(*command) (string, bool){(*command).builtin, (*command).shellData, (*command).wrapped,
		(*command).prints} {
		if out, ok := kind(c); ok {
			return out
		}
	}
	c.writers()
	if c.holdsCommand() {
		r.Undecided(c.text(), "whether "+c.name+" runs the command among its words")
	}
	if cmdline.In("npm pnpm yarn jj", c.name) {
		c.companion()
	}
	if l := languageOf(c.name); l != nil {
		c.interpreter(l)
		return open(c.name) + "\n" + composed(c.args)
	}
	if dir := path.Dir(words[0]); strings.Contains(words[0], "/") && dir != "/bin" && dir != "/usr/bin" {
		r.Undecided(c.text(), "a program or script of its own")
	}
	r.Step(c.text(), "no git command")
	return open(c.name)
}

// runsProject reports whether a program runs what the project's files say, see runners.
func (c *command) runsProject() bool {
	sub := slices.IndexFunc(c.args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	for _, r := range runners {
		if cmdline.In(r.names, c.name) {
			return r.subs == "" && !(len(c.args) == 1 && cmdline.In("--version -v -V --help -h", c.args[0])) ||
				sub >= 0 && cmdline.In(r.subs, c.args[sub])
		}
	}
	return false
}

// holdsCommand reports whether the words of a program that nothing is known of hold a
// command of git's, or a shell's text: it may be a wrapper.
func (c *command) holdsCommand() bool {
	for i, w := range c.args {
		words := c.args[i:]
		if strings.Contains(w, " ") {
			words = cmdline.Split(w)
		}
		if len(words) < 2 {
			continue
		}
		if _, ok := guard.Program(words[0]); ok {
			if name := guard.CommandName(words); guard.IsGitCommand(name) || !cmdline.Known(name) {
				return true
			}
		}
		if cmdline.In("sh bash zsh dash ksh fish", path.Base(words[0])) && strings.HasPrefix(words[1], "-") {
			return true
		}
	}
	return false
}

func (c *command) text() string { return strings.Join(c.line, " ") }

// git hands a git command to package guard, and follows what that command starts.
func (r *reader) git(st *state, argv []string) string {
	if !r.spend() {
		return open("git")
	}
	ran := r.Git(guard.Command{Place: st.place(), Argv: argv, Input: st.input(), Follow: func(s guard.Start) string {
		n := st.at(s.Place)
		n.params = s.Params
		for _, name := range s.Files {
			n.set(name, cmdline.Open(cmdline.Tracked, name))
		}
		if s.Line == "" {
			r.Step(strings.Join(s.Argv, " "), s.Note)
			return r.run(n, s.Argv)
		}
		return r.nested(n, s.Line, s.Note)
	}})
	st.asked = ran.Name == "status" || ran.Name == "rev-parse" &&
		hasArg(ran, "--git-dir", "--is-inside-work-tree", "--show-toplevel")
	return r.gitPrints(ran)
}

// companion knows programs that do git's work under another name.
func (c *command) companion() {
	p := cmdline.Parse(`m/message= preid= w/workspace= new-version= major minor patch premajor preminor prepatch
 prerelease`, c.args)
	words := " " + strings.Join(append([]string{c.name}, p.Args...), " ") + " "
	tags := !slices.ContainsFunc(c.args, func(a string) bool {
		return a == "--no-git-tag-version" || strings.HasPrefix(a, "--git-tag-version=f")
	})
	switch {
	case strings.HasPrefix(words, " jj git push "):
		c.Operation("push", c.line, nil)
	case strings.HasPrefix(words, " jj commit "), strings.HasPrefix(words, " jj ci "),
		cmdline.In("npm pnpm", c.name) && strings.Contains(words, "npm version ") && len(p.Args) > 1 && tags && !p.Help,
		// The first yarn; the second takes words, and commits nothing.
		strings.HasPrefix(words, " yarn version ") && tags &&
			p.Has("new-version", "major", "minor", "patch", "premajor", "preminor", "prepatch", "prerelease"):
		c.Operation("commit", c.line, nil)
	}
}

// builtin runs the shell's own commands.
func (c *command) builtin() (out string, ok bool) {
	st, args := c.st, c.args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch c.name {
	case "cd", "chdir", "pushd":
		to := ""
		if i := slices.IndexFunc(args, func(a string) bool {
			return a == "-" || !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+")
		}); i >= 0 {
			to = args[i]
		}
		st.cd(to)
		dir := st.dir
		if rest, ok := strings.CutPrefix(dir, c.Start()); ok && !cmdline.Known(c.Start()) {
			dir = "." + rest
		}
		c.Step(c.text(), "goes to "+cmdline.Printable(dir))
	case "popd":
		st.cd("-")
	case "exit", "logout":
		st.ended = true
		if len(args) == 1 && cmdline.Known(args[0]) {
			st.status = statusOf(strings.Trim(args[0], "0") == "")
		}
	case "return":
		if st.returns > 0 { // elsewhere the shell complains and goes on
			st.ended, st.leaving = true, true
		}
	case "true", ":":
		st.status = statusTrue
	case "false":
		st.status = statusFalse
	case "test", "[":
		st.status = testStatus(strings.TrimSuffix(strings.Join(args, "\n"), "\n]"))
		st.asked = slices.ContainsFunc(args, func(a string) bool { return path.Base(a) == ".git" })
	case "eval":
		c.Step(c.text(), "eval")
		return c.shell(st, strings.Join(args, " ")), true
	case ".", "source":
		return c.source(args), true
	case "trap":
		if len(args) > 1 {
			c.nested(st, args[0], "trap runs it")
		}
	default:
		return "", cmdline.In(`hash jobs wait ulimit umask times kill disown bg fg shopt setopt complete help man
 whereis`, c.name)
	}
	return "", true
}

// shellData runs the builtins that set what later words mean.
func (c *command) shellData() (out string, ok bool) {
	st := c.st
	switch c.name {
	case "unset":
		for _, a := range c.args {
			st.unset(a)
		}
	case "set":
		st.setParams(c.args)
	case "shift":
		st.params = st.params[min(1, len(st.params)):]
	case "alias", "unalias":
		for _, a := range c.args {
			if k, v, ok := strings.Cut(a, "="); ok {
				st.aliases[k] = v
			} else if c.name == "unalias" {
				delete(st.aliases, a)
			}
		}
	case "export", "declare", "typeset", "local", "readonly": // reached through "command" or "builtin"
		for _, a := range c.args {
			if k, v, ok := strings.Cut(a, "="); ok {
				st.setExported(k, v)
			}
		}
	case "mapfile", "readarray":
		list := strings.Split(strings.TrimRight(st.input(), "\n"), "\n")
		for _, name := range cmdline.Parse("d= n= O= s= t u= C= c=", c.args).Args {
			_ = st.Set(name, expand.Variable{Set: true, Kind: expand.Indexed, List: list})
		}
	case "read":
		st.read(cmdline.Parse("a= d= i= n= N= p= t= u=", c.args))
	default:
		return "", false
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

// read is the read builtin: the next line of a known input, else something of the
// input's kind.
func (st *state) read(p *cmdline.Parsed) {
	in := st.input()
	line := cmdline.Open(cmdline.KindOr(in), "read")
	known := cmdline.Known(in)
	if known {
		if in == "" {
			st.status = statusFalse
		}
		line, *st.stdin, _ = strings.Cut(in, "\n")
	}
	ifs := " \t\n"
	if v := st.Get("IFS"); v.Str != "" {
		ifs = v.Str
	}
	if a := p.Last("a"); a != "" {
		_ = st.Set(a, expand.Variable{Set: true, Kind: expand.Indexed,
			List: strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(ifs, c) })})
		return
	}
	if len(p.Args) == 0 {
		p.Args = []string{"REPLY"}
	}
	for i, name := range p.Args {
		line = strings.Trim(line, ifs)
		word := line
		if j := strings.IndexAny(line, ifs); known && i < len(p.Args)-1 {
			if word, line = line, ""; j >= 0 {
				word, line = word[:j], word[j+1:]
			}
		}
		st.set(name, word)
	}
}

// testStatus is the status of "test …" where all that it compares is known; the
// words stand on lines.
func testStatus(expression string) status {
	if rest, negated := strings.CutPrefix(expression, "!\n"); negated {
		return testStatus(rest).not()
	}
	words := strings.Split(expression, "\n")
	switch n := len(words); {
	case !cmdline.Known(expression):
		return statusOpen
	case n == 2 && words[0] == "-n", n == 1:
		return statusOf(words[n-1] != "")
	case n == 2 && words[0] == "-z":
		return statusOf(words[1] == "")
	case n == 3 && cmdline.In("= == -eq", words[1]):
		return statusOf(words[0] == words[2])
	case n == 3 && cmdline.In("!= -ne -gt -lt", words[1]) && words[0] == words[2]:
		return statusFalse
	case n == 3 && words[1] == "!=":
		return statusTrue
	}
	return statusOpen
}

// source reads a script into the running shell.
func (c *command) source(args []string) string {
	if len(args) == 0 {
		return ""
	}
	text := c.readFile(c.st, args[0])
	if strings.Trim(cmdline.Printable(text), "…\n ") == "" {
		c.Undecided(c.text(), "a script file")
		return open("source")
	}
	c.Step(c.text(), "a script that this text wrote")
	params := args[1:]
	if len(params) == 0 {
		params = c.st.params
	}
	return c.st.returning(params, func() string { return c.shell(c.st, text) })
}

// script runs the text of a script file that the text wrote.
func (c *command) script(text string, words []string) string {
	c.Step(words[0], "a script that this text wrote")
	n := c.st.clone()
	n.arg0, n.params = words[0], words[1:]
	if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "#!") {
		for _, w := range strings.Fields(line[2:]) { // env -S python3
			if l := languageOf(path.Base(w)); l != nil {
				c.scan(n, l, text)
				return open("script")
			}
		}
	}
	return c.shell(n, text)
}
