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
func (r *reader) wrapped(st *state, base string, words []string) (string, bool) {
	args := words[1:]
	switch base {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "oksh", "yash", "csh", "tcsh", "elvish", "nu", "xonsh":
		return r.shellProgram(st, base, words), true
	case "xargs", "gxargs":
		return r.xargs(st, args), true
	case "parallel":
		return r.parallel(st, args), true
	case "find", "gfind", "fd", "fdfind":
		return r.find(st, base, args), true
	}
	i := slices.IndexFunc(wrappers, func(w wrapper) bool { return cmdline.In(w.names, base) })
	if i < 0 {
		return "", false
	}
	w := &wrappers[i]
	if base == "env" {
		args = splitString(args)
	}
	if w.sub != "" {
		sub := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
		if sub < 0 || !cmdline.In(w.sub, args[sub]) {
			return "", false
		}
		args = args[sub+1:]
	}
	return r.wrapper(st.program(), w, base, args), true
}

// wrapper runs what one wrapper runs; n is the state that it sees.
func (r *reader) wrapper(n *state, w *wrapper, base string, args []string) string {
	options := cmdline.NewOptions(w.options)
	p := options.Parse(args, w.how != inOption)
	for name := range strings.FieldsSeq(w.shell) {
		for _, line := range p.Values[name] {
			r.nested(n, line, base+" runs it")
		}
	}
	if dir := p.Last("chdir"); dir != "" {
		n.dir = cmdline.Under(n.dir, dir)
	}
	for _, name := range p.Values["unset"] {
		n.unset(name)
	}
	rest := p.Args[min(w.skip, len(p.Args)):]
	for len(rest) > 0 && (assignment(rest[0]) || rest[0] == "-") && (w.how == asWords || w.how == afterC) {
		if k, v, ok := strings.Cut(rest[0], "="); ok {
			n.setExported(k, v)
		}
		rest = rest[1:]
	}
	switch {
	case base == "command" && p.Has("v", "V") && len(rest) == 1:
		return "/usr/bin/" + rest[0] + "\n"
	case slices.ContainsFunc(strings.Fields(w.only), func(o string) bool { return p.Has(o) }):
		return ""
	case w.how == onInput, len(rest) == 0 && p.Has("shell", "login"):
		return r.shell(n, n.input())
	case w.how == inOption, len(rest) == 0:
		return open(base)
	case w.how == joined:
		return r.nested(n, strings.Join(rest, " "), base+" runs it")
	case w.how == each:
		for _, line := range rest {
			if strings.Contains(line, " ") || !cmdline.Known(line) {
				r.nested(n, line, base+" runs it")
			}
		}
		return open(base)
	case w.how == afterC:
		i := slices.IndexFunc(args, func(a string) bool { return a == "-c" || a == "--command" })
		if i < 0 || i+1 == len(args) {
			return open(base)
		}
		rest = args[i+1:]
	case rest[0] == "-c" && len(rest) > 1: // flock FILE -c TEXT
		return r.nested(n, rest[1], base+" -c runs it")
	}
	return r.run(n, rest)
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
		if a == "--" || !strings.HasPrefix(a, "-") {
			break
		}
		letters, value, found := "", "", false
		if strings.HasPrefix(a, "--split-string") {
			_, value, _ = strings.Cut(a, "=")
			found = true
		} else if !strings.HasPrefix(a, "--") && !strings.ContainsAny(a, "uC") {
			letters, value, found = strings.Cut(a, "S")
		}
		if !found {
			continue
		}
		rest := args[i+1:]
		if value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		out := slices.Clone(args[:i])
		if len(letters) > 1 {
			out = append(out, letters)
		}
		return slices.Concat(out, cmdline.Split(value), rest)
	}
	return args
}

// shellProgram is sh and its kin: -c text, a script file, or a script on stdin.
func (r *reader) shellProgram(st *state, base string, words []string) string {
	n, args, line := st.program(), words[1:], strings.Join(words, " ")
	command, stdin := false, false
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+") && len(args[0]) > 1) {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--" || a == "-":
		case a == "--command":
			command = true
		case (a == "--rcfile" || a == "--init-file") && len(args) > 0:
			if text := r.readFile(n, args[0]); cmdline.Known(text) {
				r.nested(n, text, base+" reads it when it is interactive")
			}
			args = args[1:]
		case strings.HasPrefix(a, "--"):
		case strings.Contains(a, "n") && a[0] == '-' && base != "fish": // reads and does not run
			return ""
		default:
			command, stdin = command || strings.Contains(a, "c"), stdin || strings.Contains(a, "s")
			if strings.ContainsAny(a, "oO") && len(args) > 0 {
				args = args[1:]
			}
		}
		if a == "--" || a == "-" {
			break
		}
	}
	if v := n.Get("BASH_ENV"); v.Exported && (base == "bash" || base == "sh") {
		if text, ok := r.Files[st.path(v.Str)]; ok {
			r.nested(n, text, "BASH_ENV is read by "+base)
		}
	}
	if len(args) > 0 && !stdin && !command {
		return r.scriptFile(n, args)
	}
	n.params = args
	if command && len(args) > 0 {
		r.Step(line, base+" -c")
		if n.params = args[1:]; len(args) > 1 {
			n.arg0, n.params = args[1], args[2:]
		}
		return r.shell(n, args[0])
	}
	text := n.input()
	if strings.Trim(cmdline.Printable(text), "…\n ") == "" {
		if st.stdin != nil && text != "" {
			r.Undecided(line, "a script from a program's output")
		}
		return open("script")
	}
	r.Step(line, base+" reads its standard input")
	n.stdin = nil
	return r.shell(n, text)
}

func (r *reader) scriptFile(st *state, args []string) string {
	if text, ok := r.Files[st.path(args[0])]; ok {
		r.Step(args[0], "a script that this text wrote")
		return r.script(st, text, args)
	}
	if text := r.readFile(st, args[0]); cmdline.Known(text) {
		return r.shell(st, text)
	}
	r.Undecided(strings.Join(args, " "), "a script file")
	return open("script")
}

// parallel runs its words with the inputs after ":::", or every line of input.
func (r *reader) parallel(st *state, args []string) string {
	p := cmdline.ParseUntil("j/jobs= k/keep-order I= n/max-args= N= a/arg-file= d/delimiter= C/colsep= X m tag bar joblog= results= S/sshlogin= timeout= delay= retries= halt= q/quote v dry-run", args)
	words, inputs := p.Args, []string{st.input()}
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
			r.nested(st, line, "parallel runs it")
		}
	}
	return open("parallel")
}

// xargs appends the words of its input to a command.
func (r *reader) xargs(st *state, args []string) string {
	p := cmdline.ParseUntil(`0/null a/arg-file= d/delimiter= E= e? I= i? L/max-lines= l? n/max-args= P/max-procs= o/open-tty p/interactive r/no-run-if-empty
 s/max-chars= t/verbose x/exit J= R= replace? process-slot-var=`, args)
	in := st.input()
	if file := p.Last("arg-file"); file != "" {
		in = r.readFile(st, file)
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
	case !p.Has("null"):
		inputs = cmdline.Split(in)
	}
	n := st.program()
	n.stdin = nil
	token := p.Last("I") + p.Last("J")
	if p.Has("replace", "i") && token == "" {
		token = "{}"
	}
	if token == "" {
		return r.run(n, slices.Concat(p.Args, inputs))
	}
	out := ""
	for _, one := range inputs[:min(len(inputs), maxRounds)] {
		out += r.run(n, replaced(p.Args, token, one))
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
	*reader
	st    *state
	fd    bool // fd, fdfind
	args  []string
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
func (r *reader) find(st *state, base string, args []string) string {
	f := &findCall{reader: r, st: st, args: args, fd: base == "fd" || base == "fdfind"}
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") || a == "(" || a == "!" })
	if n < 0 {
		n = len(args)
	}
	if f.roots = args[:n]; f.fd { // the first operand is a pattern
		f.named, f.roots = n > 0, f.roots[min(1, n):]
	}
	if len(f.roots) == 0 {
		f.roots = []string{"."}
	}
	for i := 0; i < len(args); {
		i = f.primary(i)
	}
	if i := slices.Index(args, "-printf"); i >= 0 && i+1 < len(args) { // "git checkout -- %p\n"
		return strings.NewReplacer("%p", f.found(), "%P", f.found(), "%f", f.found(), `\n`, "\n").Replace(args[i+1])
	}
	return f.found()
}

// primary reads one test, operator or action and returns the index after it.
func (f *findCall) primary(i int) int {
	next := ""
	if i+1 < len(f.args) {
		next = f.args[i+1]
	}
	switch a := f.args[i]; a {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex":
		f.name(i, next)
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
	case "-empty", "-newer", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-size", "-user", "-group", "-perm", "-links", "-uid", "-gid", "-nouser", "-executable", "-newermt":
		f.named = true
	case "-delete":
		f.remove()
	case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		if (a == "-x" || a == "-X" || a[1] == '-') == f.fd {
			return f.exec(i + 1)
		}
	}
	return i + 1
}

// name reads a test of names or paths.
func (f *findCall) name(i int, pattern string) {
	negated := i > 0 && (f.args[i-1] == "!" || f.args[i-1] == "-not")
	switch hit := f.reaches(f.args[i], pattern); {
	case negated:
		f.excluded = f.excluded || hit
	case pattern != "*":
		// Two tests must both hold; a path inside .git can have any name.
		f.gitNamed = hit && (!f.named || f.gitNamed || strings.Contains(pattern, ".git/"))
		f.named = true
	}
}

// inGitDir are names in a git directory: files, then folders.
var inGitDir = [...]string{"HEAD config index packed-refs ORIG_HEAD FETCH_HEAD description", "refs objects hooks logs info worktrees modules"}

// reaches reports whether a pattern matches .git or what is in it.
func (f *findCall) reaches(test, pattern string) bool {
	switch {
	case strings.HasSuffix(test, "regex"):
		return strings.Contains(strings.NewReplacer(".github", "", ".gitignore", "").Replace(pattern), ".git")
	case strings.HasSuffix(test, "name") && !strings.Contains(test, "whole"):
		if glob(pattern, ".git") || strings.EqualFold(pattern, ".git") {
			return true
		}
		names := ""
		if f.kind != "d" {
			names += inGitDir[0] + " "
		}
		if f.kind != "f" {
			names += inGitDir[1]
		}
		return f.aboveStart() && slices.ContainsFunc(strings.Fields(names), func(n string) bool { return glob(pattern, n) })
	}
	for _, root := range f.roots {
		for _, p := range []string{"/.git", "/.git/config", "/.git/HEAD", "/.git/refs/heads/main"} {
			if glob(pattern, strings.TrimSuffix(root, "/")+p) {
				return true
			}
		}
	}
	return false
}

// aboveStart reports whether one of the roots holds the directory that the text
// begins in.
func (f *findCall) aboveStart() bool {
	return slices.ContainsFunc(f.roots, func(root string) bool { return f.wholeTree(f.st.path(root)) })
}

// glob matches as find does: "*" matches slashes and leading dots, too.
func glob(pattern, name string) bool {
	if len(pattern) > 200 || !cmdline.Known(pattern) {
		return false
	}
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*`, ".*", `\?`, ".", `\[!`, "[^", `\[`, "[", `\]`, "]", `\^`, "^").Replace(text)
	re, err := regexp.Compile("^(?s:" + text + ")$")
	return err == nil && re.MatchString(name)
}

// allFiles is the name of the open part that holds every file of the tree, those in
// .git too.
const allFiles = "all"

// found is the names that are printed, and that stand for {}.
func (f *findCall) found() string {
	root := f.roots[0]
	switch {
	case f.gitNamed && !f.excluded:
		if slices.Contains(f.roots, ".") || root == ".git" || strings.Contains(root, "/.git") {
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
		if !inside && f.excluded {
			continue
		}
		if inside || f.gitNamed && !f.Elsewhere(f.st.place(), full) || f.everything() && f.wholeTree(full) {
			f.Operation("gitdir.write", append([]string{"find"}, f.args...), nil)
			return
		}
	}
}

// wholeTree reports whether deleting or moving p takes the repository along: it
// is the starting directory or above it.
func (r *reader) wholeTree(p string) bool { return superqode.Within(r.Start(), path.Clean(p)) }
