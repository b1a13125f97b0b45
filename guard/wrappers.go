package guard

import (
	"slices"
	"strings"
)

// wrapped follows a command into the command that it runs.
func (c *checker) wrapped(st *state, base string, words []string) (string, bool) {
	args := words[1:]
	if isShell(base) {
		return c.shellProgram(st, base, words), true
	}
	switch base {
	case "env":
		return c.env(st, args), true
	case "sudo":
		return c.sudo(st, args), true
	case "xargs", "gxargs":
		return c.xargs(st, args), true
	case "find", "gfind", "fd", "fdfind":
		return c.find(st, base, args), true
	case "parallel":
		return c.parallel(st, args), true
	case "flock":
		return c.flock(st, args), true
	case "at", "batch":
		if st.stdin != nil {
			return c.nested(st, *st.stdin, base+" runs it"), true
		}
		return "", true
	case "make", "gmake":
		c.make(st, args)
		return "", false
	case "bwrap":
		return c.bwrap(st, args), true
	case "cmd":
		if len(args) > 1 && strings.EqualFold(args[0], "/c") {
			return c.nested(st, strings.Join(args[1:], " "), "cmd /c"), true
		}
		return "", true
	}
	i := slices.IndexFunc(wrappers, func(w wrapper) bool { return w.name == base })
	if i < 0 {
		return "", false
	}
	return c.wrapper(st, wrappers[i], words)
}

func (c *checker) wrapper(st *state, w wrapper, words []string) (string, bool) {
	args := words[1:]
	if w.how == 's' {
		sub, rest := first(args)
		if !slices.Contains(strings.Split(w.sub, "|"), sub) {
			return "", false
		}
		args = rest
		if w.name == "direnv" && len(args) > 0 {
			args = args[1:]
		}
	}
	p := newSpec(w.options).parse(args, w.how != '+')
	for _, name := range strings.Fields(w.shell) {
		for _, line := range p.values[name] {
			c.nested(st, line, w.name+" runs it")
		}
	}
	rest := p.args
	if w.name == "command" && (p.has("v") || p.has("V")) {
		if len(rest) == 1 {
			return "/usr/bin/" + rest[0] + "\n", true
		}
		return "", true
	}
	for len(rest) > 0 && assignment(rest[0]) && w.how != 'e' && w.how != 'j' { // cross-env A=b, uv run A=b
		rest = rest[1:]
	}
	rest = rest[min(w.skip, len(rest)):]
	switch w.how {
	case '-', '+':
		return unknownValue(kindOpen, w.name), true
	case 'J': // nix develop -c git …, just --command git …
		i := slices.IndexFunc(args, func(a string) bool { return a == "-c" || a == "--command" })
		if i < 0 {
			return unknownValue(kindOpen, w.name), true
		}
		rest = args[i+1:]
	case 'A':
		if len(rest) > 1 && archNames.has(rest[0]) {
			rest = rest[1:]
		}
	case 'j':
		rest = slices.Concat(p.values["Command"], p.values["c"], rest)
		if len(rest) > 0 {
			c.nested(st, strings.Join(rest, " "), w.name+" runs it")
		}
		return unknownValue(kindOpen, w.name), true
	case 'e':
		for _, line := range rest {
			if strings.Contains(line, " ") || !isKnown(line) {
				c.nested(st, line, w.name+" runs it")
			}
		}
		return unknownValue(kindOpen, w.name), true
	}
	if len(rest) == 0 {
		return "", true
	}
	if w.name == "exec" {
		out := c.run(st.clone(), rest)
		st.ended = true
		return out, true
	}
	if w.name == "builtin" || w.name == "command" {
		return c.program(st, rest), true // functions are passed over
	}
	return c.run(withoutShell(st), rest), true
}

// withoutShell is the state as a program sees it: no functions, no aliases.
func withoutShell(st *state) *state {
	n := st.clone()
	n.returns = 0
	clear(n.funcs)
	clear(n.aliases)
	return n
}

func assignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	if !ok || name == "" {
		return false
	}
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// isShell reports whether a program is a shell.
func isShell(base string) bool {
	switch base {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "oksh", "yash", "csh", "tcsh", "elvish", "nu", "xonsh":
		return true
	}
	return false
}

// shellProgram is sh and its kin: -c text, a script file, or a script on stdin.
func (c *checker) shellProgram(st *state, base string, words []string) string {
	n := withoutShell(st)
	args := words[1:]
	command, stdin := false, false
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+") && len(args[0]) > 1) {
		a := args[0]
		args = args[1:]
		if a == "--" || a == "-" {
			break
		}
		if strings.HasPrefix(a, "--") {
			if a == "--command" {
				command = true
			}
			if slices.Contains([]string{"--rcfile", "--init-file"}, a) && len(args) > 0 {
				if text := c.readFile(n, args[0]); isKnown(text) && text != "" {
					c.nested(n, text, base+" reads it when it is interactive")
				}
				args = args[1:]
			}
			continue
		}
		for _, l := range a[1:] {
			switch l {
			case 'c':
				command = true
			case 's':
				stdin = true
			case 'n':
				if a[0] == '-' && base != "fish" { // reads and does not run
					return ""
				}
			case 'o', 'O':
				if len(args) > 0 {
					args = args[1:]
				}
			}
		}
	}
	if v, ok := st.exported("BASH_ENV"); ok && (base == "bash" || base == "sh") && isKnown(v) {
		if text, ok := c.files[under(st.dir, v)]; ok {
			c.nested(n, text, "BASH_ENV is read by "+base)
		}
	}
	if command && len(args) > 0 {
		c.step(strings.Join(words, " "), base+" -c")
		n.params = args[1:]
		if len(args) > 1 {
			n.arg0, n.params = args[1], args[2:]
		}
		return c.shell(n, args[0])
	}
	if len(args) > 0 && !stdin {
		return c.scriptFile(n, args)
	}
	n.params = args
	if st.stdin != nil && *st.stdin != "" {
		c.step(strings.Join(words, " "), base+" reads its standard input")
		text := *st.stdin
		n.stdin = nil
		if !isKnown(text) && strings.Trim(printable(text), "…\n ") == "" {
			c.undecided(strings.Join(words, " "), "a script from a program's output")
			return unknownValue(kindOpen, "script")
		}
		return c.shell(n, text)
	}
	return ""
}

func (c *checker) scriptFile(st *state, args []string) string {
	if text, ok := c.files[under(st.dir, args[0])]; ok {
		c.step(args[0], "a script that this text wrote")
		return c.script(st, text, args)
	}
	if text := c.readFile(st, args[0]); isKnown(text) && text != "" {
		return c.shell(st, text)
	}
	c.undecided(strings.Join(args, " "), "a script file")
	return unknownValue(kindOpen, "script")
}

func (c *checker) env(st *state, args []string) string {
	n := withoutShell(st)
	p := newSpec("i/ignore-environment 0/null u/unset= C/chdir= v/debug block-signal? default-signal? ignore-signal? a/argv0=").parse(splitString(args), true)
	if p.has("chdir") {
		n.dir = under(n.dir, p.last("chdir"))
	}
	for _, u := range p.values["unset"] {
		n.unset(u)
	}
	rest := p.args
	for len(rest) > 0 && (assignment(rest[0]) || rest[0] == "-") {
		if k, v, ok := strings.Cut(rest[0], "="); ok {
			n.setExported(k, v)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return unknownValue(kindOpen, "env")
	}
	return c.run(n, rest)
}

// splitString puts the words of env -S where it stands.
func splitString(args []string) []string {
	for i, a := range args {
		value, found := strings.CutPrefix(a, "--split-string=")
		letters, before := "", i
		if !found && strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && !strings.ContainsAny(a, "uC") {
			letters, value, found = strings.Cut(a, "S")
		} else if a == "--split-string" {
			found = true
		}
		rest := args[i+1:]
		if found && value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		if found {
			out := slices.Clone(args[:before])
			if len(letters) > 1 {
				out = append(out, letters)
			}
			return slices.Concat(out, splitCommand(value), rest)
		}
		if a == "--" || !strings.HasPrefix(a, "-") {
			break
		}
	}
	return args
}

func (c *checker) sudo(st *state, args []string) string {
	n := withoutShell(st)
	p := newSpec(`A/askpass b/background E/preserve-env? e/edit g/group= H/set-home h/host= i/login K k l/list n/non-interactive P p/prompt= C/close-from= r/role= s/shell S/stdin
 t/type= T/command-timeout= U/other-user= u/user= D/chdir= R/chroot= v/validate V/version`).parse(args, true)
	if p.has("list", "validate", "version", "edit") {
		return ""
	}
	if p.has("chdir") {
		n.dir = under(n.dir, p.last("chdir"))
	}
	rest := p.args
	for len(rest) > 0 && assignment(rest[0]) {
		k, v, _ := strings.Cut(rest[0], "=")
		n.setExported(k, v)
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if p.has("shell", "login") && st.stdin != nil {
			return c.shell(n, *st.stdin)
		}
		return ""
	}
	return c.run(n, rest)
}
