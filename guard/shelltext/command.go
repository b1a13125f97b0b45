package shelltext

import (
	"path"
	"slices"
	"strconv"
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
			r.assign(st, a)
			r.Step(a.Name.Value+"="+st.Get(a.Name.Value).String(), "a variable")
		}
		return ""
	}
	words := r.fields(st, x.Args...)
	if len(x.Assigns) == 0 {
		return r.run(st, words)
	}
	sub := st.clone() // variables before a command hold for that command
	for _, a := range x.Assigns {
		r.assign(sub, a)
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
		return r.function(st, body, words)
	}
	if text, ok := st.aliases[words[0]]; ok {
		n := st.clone()
		delete(n.aliases, words[0])
		return r.nested(n, text+" "+quote(words[1:]), "shell alias "+words[0])
	}
	return r.program(st, words)
}

// quote puts words into single quotes, so that a shell reads them as they are.
func quote(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "' ")
	}
	return b.String()
}

func (r *reader) function(st *state, body *syntax.Stmt, words []string) string {
	leave, ok := r.enter()
	if !ok {
		return open("function")
	}
	defer leave()
	saved := st.params
	st.params = words[1:]
	out := r.returning(st, func() string { return r.stmt(st, body) })
	st.params = saved
	return out
}

// returning runs what "return" may leave: a function, a sourced file.
func (r *reader) returning(st *state, run func() string) string {
	st.returns++
	out := run()
	st.returns--
	if st.leaving {
		st.ended, st.leaving = false, false
	}
	return out
}

// program looks at a command that is no function: git, a builtin, a wrapper
// around another command, a tool that writes files, an interpreter.
func (r *reader) program(st *state, words []string) string {
	if sub, ok := guard.Program(words[0]); ok {
		return r.git(st, slices.Concat([]string{"git"}, sub, words[1:]))
	}
	base, line := strings.TrimSuffix(path.Base(words[0]), ".exe"), strings.Join(words, " ")
	if !cmdline.Known(base) {
		if len(words) > 2 && words[1] == "=" { // PowerShell: $x = git status
			return r.run(st.program(), words[2:])
		}
		r.Undecided(line, "which program this is")
		return open("command")
	}
	if base == "hub" && len(words) > 1 && guard.IsGitCommand(words[1]) { // hub COMMAND is git COMMAND
		return r.git(st, append([]string{"git"}, words[1:]...))
	}
	if text, ok := r.Files[st.path(words[0])]; ok && strings.Contains(words[0], "/") {
		r.Step(words[0], "a script that this text wrote")
		return r.script(st, text, words)
	}
	for _, kind := range []func(*state, string, []string) (string, bool){r.builtin, r.wrapped, r.prints} {
		if out, ok := kind(st, base, words); ok {
			return out
		}
	}
	r.writers(st, base, words[1:])
	if r.companion(base, words) {
		return open(base)
	}
	if l := languageOf(base); l != nil {
		return r.interpreter(st, l, words) + "\n" + composed(words[1:])
	}
	if strings.Contains(words[0], "/") && path.Dir(words[0]) != "/bin" && path.Dir(words[0]) != "/usr/bin" {
		r.Undecided(line, "a program or script of its own")
	}
	r.Step(line, "no git command")
	return open(base)
}

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
	st.asked = ran.Name == "status" || ran.Name == "rev-parse" && hasArg(ran, "--git-dir", "--is-inside-work-tree", "--show-toplevel")
	return r.gitPrints(ran)
}

// companion knows programs that do git's work under another name.
func (r *reader) companion(base string, words []string) bool {
	args := words[1:]
	p := cmdline.Parse("m/message= preid= w/workspace= new-version= major minor patch premajor preminor prepatch prerelease f/force json", args)
	has := func(i int, w string) bool { return i < len(p.Args) && cmdline.In(w, p.Args[i]) }
	tags := !slices.Contains(args, "--no-git-tag-version") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--git-tag-version=f") })
	switch {
	case base == "jj" && has(0, "git") && has(1, "push"):
		r.Operation("push", words, nil)
	case base == "jj" && has(0, "commit ci"),
		(base == "npm" || base == "pnpm") && has(0, "version") && len(p.Args) > 1 && tags && !p.Help,
		// The first yarn; the second takes words, and commits nothing.
		base == "yarn" && has(0, "version") && tags && p.Has("new-version", "major", "minor", "patch", "premajor", "preminor", "prepatch", "prerelease"):
		r.Operation("commit", words, nil)
	default:
		return false
	}
	return true
}

// builtin runs the shell's own commands.
func (r *reader) builtin(st *state, base string, words []string) (out string, ok bool) {
	args := words[1:]
	switch base {
	case "cd", "chdir", "pushd":
		to := ""
		if i := slices.IndexFunc(args, func(a string) bool { return a == "-" || !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") }); i >= 0 {
			to = args[i]
		}
		st.cd(to)
		dir := st.dir
		if rest, ok := strings.CutPrefix(dir, r.Start()); ok && !cmdline.Known(r.Start()) {
			dir = "." + rest
		}
		r.Step(strings.Join(words, " "), "goes to "+cmdline.Printable(dir))
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
	case "eval":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		r.Step(strings.Join(words, " "), "eval")
		return r.shell(st, strings.Join(args, " ")), true
	case ".", "source":
		return r.source(st, words), true
	case "unset":
		for _, a := range args {
			st.unset(a)
		}
	case "set":
		st.setParams(args)
	case "shift":
		st.params = st.params[min(1, len(st.params)):]
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
	case "export", "declare", "typeset", "local", "readonly": // reached through "command" or "builtin"
		for _, a := range args {
			if k, v, ok := strings.Cut(a, "="); ok {
				st.setExported(k, v)
			}
		}
	case "trap":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			r.nested(st, args[0], "trap runs it")
			if len(r.traps) < maxRounds {
				r.traps = append(r.traps, args[0])
			}
		}
	case "read", "mapfile", "readarray":
		st.read(base, args)
	case "test", "[":
		st.status = testStatus(args)
		st.asked = slices.ContainsFunc(args, func(a string) bool { return path.Base(a) == ".git" })
	default:
		return "", cmdline.In("hash jobs wait ulimit umask times kill disown bg fg shopt setopt complete help man whereis", base)
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

// read is read, mapfile or readarray: the next line, or all lines, of a known input,
// else something of the input's kind.
func (st *state) read(base string, args []string) {
	in := st.input()
	known := cmdline.Known(in)
	if base != "read" {
		for _, name := range cmdline.Parse("d= n= O= s= t u= C= c=", args).Args {
			_ = st.Set(name, expand.Variable{Set: true, Kind: expand.Indexed, List: strings.Split(strings.TrimRight(in, "\n"), "\n")})
		}
		return
	}
	p := cmdline.Parse("a= d= i= n= N= p= t= u= r s e", args)
	line := cmdline.Open(cmdline.KindOr(in), "read")
	if known {
		st.status = statusOpen
		if in == "" {
			st.status = statusFalse
		}
		line, *st.stdin, _ = strings.Cut(in, "\n")
	}
	ifs := " \t\n"
	if v := st.Get("IFS"); v.Set && v.Str != "" {
		ifs = v.Str
	}
	if a := p.Last("a"); a != "" {
		_ = st.Set(a, expand.Variable{Set: true, Kind: expand.Indexed, List: strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(ifs, c) })})
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

// testStatus is the status of "test …" or "[ … ]" where all that it compares is
// known.
func testStatus(args []string) status {
	if n := len(args); n > 0 && args[n-1] == "]" {
		args = args[:n-1]
	}
	if len(args) > 0 && args[0] == "!" {
		return testStatus(args[1:]).not()
	}
	if slices.ContainsFunc(args, func(a string) bool { return !cmdline.Known(a) }) {
		return statusOpen
	}
	switch {
	case len(args) == 1:
		return statusOf(args[0] != "")
	case len(args) == 2 && args[0] == "-n":
		return statusOf(args[1] != "")
	case len(args) == 2 && args[0] == "-z":
		return statusOf(args[1] == "")
	case len(args) == 3 && (args[1] == "=" || args[1] == "=="):
		return statusOf(args[0] == args[2])
	case len(args) == 3 && args[1] == "!=":
		return statusOf(args[0] != args[2])
	case len(args) == 3:
		a, err1 := strconv.Atoi(args[0])
		b, err2 := strconv.Atoi(args[2])
		holds, ok := map[string]bool{"-eq": a == b, "-ne": a != b, "-gt": a > b, "-ge": a >= b, "-lt": a < b, "-le": a <= b}[args[1]]
		if err1 == nil && err2 == nil && ok {
			return statusOf(holds)
		}
	}
	return statusOpen
}

// source reads a script into the running shell.
func (r *reader) source(st *state, words []string) string {
	if len(words) < 2 {
		return ""
	}
	text, ok := r.Files[st.path(words[1])]
	if !ok {
		text = r.readFile(st, words[1])
	}
	if !ok && (text == "" || !cmdline.Known(text)) {
		r.Undecided(strings.Join(words, " "), "a script file")
		return open("source")
	}
	r.Step(strings.Join(words, " "), "a script that this text wrote")
	saved := st.params
	if len(words) > 2 {
		st.params = words[2:]
	}
	out := r.returning(st, func() string { return r.shell(st, text) })
	st.params = saved
	return out
}

// script runs the text of a script file.
func (r *reader) script(st *state, text string, words []string) string {
	n := st.clone()
	n.arg0, n.params = words[0], words[1:]
	if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "#!") {
		for _, w := range strings.Fields(line[2:]) { // env -S python3
			if l := languageOf(path.Base(w)); l != nil {
				r.scan(n, l, text)
				return open("script")
			}
		}
	}
	return r.shell(n, text)
}
