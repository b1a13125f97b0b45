package shelltext

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// wrapped follows a command into the command that it runs.
func (c *command) wrapped() (string, bool) {
	switch c.name {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "oksh", "yash", "csh", "tcsh", "elvish",
		"nu", "xonsh":
		return c.shellProgram(), true
	case "xargs", "gxargs":
		return c.xargs(), true
	case "parallel":
		return c.parallel(), true
	case "find", "gfind", "fd", "fdfind":
		return c.find(), true
	}
	for i := range wrappers {
		if w := &wrappers[i]; cmdline.In(w.names, c.name) {
			if args, ok := w.after(c.args); ok {
				return c.wrapper(w, args), true
			}
		}
	}
	return "", false
}

// after returns the words after the subcommand, and whether it is one that runs
// something.
func (w *wrapper) after(args []string) ([]string, bool) {
	if w.names == "env" {
		args = splitString(args)
	}
	if w.sub == "" {
		return args, true
	}
	sub := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if sub < 0 || !cmdline.In(w.sub, args[sub]) {
		return nil, false
	}
	return args[sub+1:], true
}

// wrapper runs what one wrapper runs.
func (c *command) wrapper(w *wrapper, args []string) string {
	n, note := c.st.program(), c.name+" runs it"
	parse := cmdline.ParseUntil
	if w.how == inOption {
		parse = cmdline.Parse
	}
	p := parse(w.options, args)
	for name := range strings.FieldsSeq(w.shell) {
		for _, line := range p.Values[name] {
			c.nested(n, line, note)
		}
	}
	n.dir = cmdline.Under(n.dir, p.Last("chdir"))
	for _, name := range p.Values["unset"] {
		n.unset(name)
	}
	rest := p.Args[min(w.skip, len(p.Args)):]
	if w.skip > 0 && len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	for len(rest) > 0 && (assignment(rest[0]) || rest[0] == "-") && w.how == asWords {
		if k, v, ok := strings.Cut(rest[0], "="); ok {
			n.setExported(k, v)
		}
		rest = rest[1:]
	}
	switch {
	case c.name == "command" && p.Has("v", "V"):
		return "/usr/bin/" + strings.Join(rest, " ") + "\n"
	case p.Has(strings.Fields(w.only)...):
		return ""
	case w.how == onInput, len(rest) == 0 && p.Has("shell", "login"):
		return c.shell(n, n.input())
	case w.how == inOption, len(rest) == 0:
		return open(c.name)
	case w.how == joined:
		return c.nested(n, strings.Join(rest, " "), note)
	case w.how == each:
		for _, line := range rest {
			if strings.Contains(line, " ") || !cmdline.Known(line) {
				c.nested(n, line, note)
			}
		}
		return open(c.name)
	case w.how == afterC:
		i := slices.IndexFunc(args, func(a string) bool { return a == "-c" || a == "--command" })
		if i < 0 {
			return open(c.name)
		}
		return c.run(n, args[i+1:])
	case rest[0] == "-c" && len(rest) > 1: // flock FILE -c TEXT
		return c.nested(n, rest[1], note)
	case c.name == "exec":
		c.st.ended = true
	}
	return c.run(n, rest)
}

// assignment reports whether a word sets a variable.
func assignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	for i, c := range name {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return ok && name != ""
}

// splitString puts the words of env -S where it stands.
func splitString(args []string) []string {
	for i, a := range args {
		value, found := strings.CutPrefix(a, "--split-string")
		if !found && !strings.HasPrefix(a, "--") && strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "uC") {
			_, value, found = strings.Cut(a, "S")
		}
		rest := args[i+1:]
		if value = strings.TrimPrefix(value, "="); found && value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		if found {
			return slices.Concat(args[:i], cmdline.Split(value), rest)
		}
		if !strings.HasPrefix(a, "-") {
			break
		}
	}
	return args
}

// shellProgram is sh and its kin: -c text, a script file, or a script on stdin.
func (c *command) shellProgram() string {
	n, args := c.st.program(), c.args
	run, stdin, ended := false, false, false
	for len(args) > 0 && !ended && (strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+")) {
		a := args[0]
		args = args[1:]
		letters := strings.TrimLeft(a, "+-")
		switch {
		case letters == "":
			ended = true
		case a == "--command":
			run = true
		case strings.HasPrefix(a, "--"):
			if cmdline.In("--rcfile --init-file", a) {
				args = args[min(1, len(args)):]
			}
		case strings.Contains(letters, "n") && a[0] == '-' && c.name != "fish": // reads and does not run
			return ""
		default:
			run, stdin = run || strings.Contains(letters, "c"), stdin || strings.Contains(letters, "s")
			if strings.ContainsAny(letters, "oO") {
				args = args[min(1, len(args)):]
			}
		}
	}
	if run && len(args) > 0 {
		c.Step(c.text(), c.name+" -c")
		if n.params = args[1:]; len(args) > 1 {
			n.arg0, n.params = args[1], args[2:]
		}
		return c.shell(n, args[0])
	}
	text, script := n.input(), c.st.stdin != nil
	if len(args) > 0 && !stdin {
		text, script = c.readFile(n, args[0]), true
	}
	if strings.Trim(cmdline.Printable(text), "…\n ") == "" {
		if script && text != "" {
			c.Undecided(c.text(), "a script that this text does not hold")
		}
		return open("script")
	}
	if len(args) > 0 && !stdin {
		return c.script(text, args)
	}
	c.Step(c.text(), c.name+" reads its standard input")
	n.params, n.stdin = args, nil
	return c.shell(n, text)
}

// parallel runs its words with the inputs after ":::", or every line of input.
func (c *command) parallel() string {
	p := cmdline.ParseUntil(`j/jobs= I= n/max-args= N= a/arg-file= d/delimiter= C/colsep= joblog= results= S/sshlogin=
 timeout= delay= retries= halt= dry-run`, c.args)
	words, inputs := p.Args, []string{c.st.input()}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ":::") }); i >= 0 {
		words, inputs = words[:i], words[i+1:]
	} else if cmdline.Known(inputs[0]) {
		inputs = strings.Split(strings.TrimSpace(inputs[0]), "\n")
	}
	for _, in := range inputs[:min(len(inputs), maxRounds)] {
		line := strings.Join(words, " ")
		if strings.Contains(line, "{") {
			line = strings.NewReplacer("{}", in, "{.}", in, "{/}", in, "{//}", in, "{1}", in).Replace(line)
		} else {
			line += " " + in
		}
		if !p.Has("dry-run") {
			c.nested(c.st, line, "parallel runs it")
		}
	}
	return open("parallel")
}

// xargs appends the words of its input to a command.
func (c *command) xargs() string {
	p := cmdline.ParseUntil(`0/null a/arg-file= d/delimiter= E= e? I= i? L/max-lines= l? n/max-args= P/max-procs=
 s/max-chars= J= R= replace? process-slot-var=`, c.args)
	in := c.st.input()
	if file := p.Last("arg-file"); file != "" {
		in = c.readFile(c.st, file)
	}
	if len(p.Args) == 0 {
		return in
	}
	inputs := []string{strings.TrimSpace(in)}
	switch {
	case !cmdline.Known(in):
		if strings.ContainsAny(inputs[0], " \n\t") {
			inputs[0] = sameKind(in)
		}
	case p.Has("I", "d"):
		inputs = strings.Split(strings.TrimRight(in, "\n"), "\n")
	case p.Has("null") && c.st.stdin != nil && p.Last("arg-file") == "":
		inputs = strings.Split(strings.TrimRight(*c.st.stdin, "\x00"), "\x00")
	case !p.Has("null"):
		inputs = cmdline.Split(in)
	}
	n := c.st.program()
	n.stdin = nil
	token := p.Last("I") + p.Last("J")
	if p.Has("replace", "i") && token == "" {
		token = "{}"
	}
	if token == "" {
		return c.run(n, slices.Concat(p.Args, inputs))
	}
	out := ""
	for _, one := range inputs[:min(len(inputs), maxRounds)] {
		out += c.run(n, replaced(p.Args, token, one))
	}
	return out
}

func replaced(words []string, token, with string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ReplaceAll(w, token, with)
	}
	return out
}

// findCall is one call of find or fd: where it looks and what its expression
// leaves.
type findCall struct {
	*command
	fd    bool // fd, fdfind
	roots []string

	pruned   bool   // an alternative that .git has ends in -prune
	excluded bool   // .git is left out
	named    bool   // tests leave some names only
	gitNamed bool   // … and what is in .git, or .git itself, can have them
	top      bool   // -maxdepth 1
	kind     string // -type
}

// find runs commands on what it finds, and deletes it. It returns the names that
// it prints.
func (c *command) find() string {
	f := &findCall{command: c, fd: strings.HasPrefix(c.name, "fd")}
	n := 0
	for n < len(c.args) && !strings.HasPrefix(c.args[n], "-") && c.args[n] != "(" && c.args[n] != "!" {
		n++
	}
	if f.roots = c.args[:n]; f.fd { // the first operand is a pattern
		f.named, f.roots = n > 0, f.roots[min(1, n):]
	}
	if len(f.roots) == 0 {
		f.roots = []string{"."}
	}
	for i := 0; i < len(c.args); {
		i = f.primary(i)
	}
	if i := slices.Index(c.args, "-printf"); i >= 0 && i+1 < len(c.args) { // "git checkout -- %p\n"
		return strings.NewReplacer("%p", f.found(), "%P", f.found(), "%f", f.found(), `\n`, "\n").Replace(c.args[i+1])
	}
	return f.found()
}

// primary reads one test, operator or action and returns the index after it.
func (f *findCall) primary(i int) int {
	next := append(f.args, "")[i+1]
	switch a := f.args[i]; a {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex":
		hit := f.reaches(a, next)
		switch {
		case i > 0 && cmdline.In("! -not", f.args[i-1]):
			f.excluded = f.excluded || hit
		case next != "*":
			// Two tests must both hold; a path inside .git can have any name.
			f.gitNamed = hit && (!f.named || f.gitNamed || strings.Contains(next, ".git/"))
			f.named = true
		}
		return i + 2
	case "-prune":
		f.pruned = f.pruned || f.gitNamed
	case "-o", "-or", ",":
		f.excluded = f.excluded || f.pruned // ".git -prune -o …": what follows leaves it out
		f.named, f.gitNamed, f.kind = false, false, ""
	case "-maxdepth":
		f.top = next == "1" || next == "0"
		return i + 2
	case "-type":
		f.kind = next
		return i + 2
	case "-mindepth", "-printf", "-fprint", "-fprintf", "-fls":
		return i + 2
	case "-delete":
		f.remove()
	case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		if (a == "-x" || a == "-X" || a[1] == '-') == f.fd {
			return f.exec(i + 1)
		}
	default:
		f.named = f.named || cmdline.In(`-empty -newer -mtime -mmin -ctime -cmin -atime -amin -size -user -group -perm
 -links -uid -gid -nouser -executable -newermt`, a)
	}
	return i + 1
}

// reaches reports whether a pattern matches .git or what is in it.
func (f *findCall) reaches(test, pattern string) bool {
	var names []string
	switch {
	case strings.HasSuffix(test, "regex"):
		return strings.Contains(strings.NewReplacer(".github", "", ".gitignore", "").Replace(pattern), ".git")
	case strings.HasSuffix(test, "ename") || strings.HasSuffix(test, "path"):
		for _, root := range f.roots {
			root = strings.TrimSuffix(root, "/")
			names = append(names, root+"/.git", root+"/.git/config", root+"/.git/HEAD", root+"/.git/refs/heads/main")
		}
	default:
		if names = []string{".git"}; f.aboveStart() && f.kind != "d" {
			names = append(names, "HEAD", "config", "index", "packed-refs", "ORIG_HEAD", "FETCH_HEAD", "description")
		}
		if f.aboveStart() && f.kind != "f" {
			names = append(names, "refs", "objects", "hooks", "logs", "info", "worktrees", "modules")
		}
	}
	// As find does: "*" matches slashes and leading dots, too.
	glob := strings.NewReplacer(`\*`, ".*", `\?`, ".", `\[!`, "[^", `\[`, "[", `\]`, "]", `\^`, "^")
	text := glob.Replace(regexp.QuoteMeta(pattern))
	re, err := regexp.Compile("^(?s:" + text + ")$")
	return err == nil && len(pattern) < 200 && cmdline.Known(pattern) && slices.ContainsFunc(names, re.MatchString) ||
		strings.EqualFold(pattern, ".git")
}

// aboveStart reports whether one of the roots holds the directory that the text
// begins in.
func (f *findCall) aboveStart() bool {
	return slices.ContainsFunc(f.roots, func(root string) bool { return f.wholeTree(f.st.path(root)) })
}

// allFiles is the name of the open part that holds every file of the tree, those in
// .git too.
const allFiles = "all"

// found is the names that are printed, and that stand for {}.
func (f *findCall) found() string {
	root := f.roots[0]
	switch {
	case f.gitNamed && !f.excluded:
		if slices.Contains(f.roots, ".") || strings.HasPrefix(path.Base(root), ".git") ||
			strings.Contains(root, "/.git") {
			return ".git"
		}
		return path.Join(root, ".git")
	case f.everything():
		return cmdline.Open(cmdline.Paths, allFiles)
	case len(f.roots) == 1 && root != "." && !f.fd:
		return strings.TrimSuffix(root, "/") + "/" + cmdline.Open(cmdline.Paths, "find")
	}
	return cmdline.Open(cmdline.Paths, "find")
}

// everything reports whether the tree and its .git are found whole.
func (f *findCall) everything() bool {
	return !f.named && !f.excluded && !f.fd && !(f.top && f.kind == "f") && f.aboveStart()
}

// exec runs -exec and returns the index after its end.
func (f *findCall) exec(i int) int {
	words := f.args[i:]
	end := slices.IndexFunc(words, func(w string) bool { return w == ";" || w == "+" })
	if end < 0 {
		end = len(words)
	}
	cmd := replaced(words[:end], "{}", f.found())
	if f.fd && !slices.Contains(words[:end], "{}") {
		cmd = append(cmd, f.found())
	}
	f.run(f.st.program(), cmd)
	return i + end + 1
}

// remove is -delete. With -prune GNU find refuses it, unless -depth stands there.
func (f *findCall) remove() {
	if slices.Contains(f.args, "-prune") && !slices.Contains(f.args, "-depth") && !slices.Contains(f.args, "-d") {
		return
	}
	for _, root := range f.roots {
		full := f.st.path(root)
		inside := f.Protects(f.st.place(), full)
		if inside || !f.excluded && (f.gitNamed && !f.Elsewhere(f.st.place(), full) || f.everything() &&
			f.wholeTree(full)) {
			f.Operation("gitdir.write", f.line, nil)
			return
		}
	}
}

// wholeTree reports whether deleting or moving p takes the repository along: it
// is the starting directory or above it.
func (r *reader) wholeTree(p string) bool { return superqode.Within(r.Start(), path.Clean(p)) }
