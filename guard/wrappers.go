package guard

import (
	"slices"
	"strings"
)

// wrapper describes a program that runs another command: its options, how many
// words stand before the command, and how the command is given.
type wrapper struct {
	name    string
	options string // optionSpec text
	skip    int    // words before the command
	how     byte   // 'a' words; 'j' words joined to shell text; 'e' every word is shell text; 's' the subcommands in sub come first
	sub     string
	shell   string // options whose value is shell text
}

// wrappers is knowledge, one row a program. Subcommands are "|"-separated; a
// program whose subcommand is not listed runs nothing that is looked into.
var wrappers = []wrapper{
	{name: "nohup", how: 'a'}, {name: "setsid", options: "c f w", how: 'a'}, {name: "chronic", how: 'a'}, {name: "unbuffer", how: 'a'},
	{name: "nice", options: "n/adjustment=", how: 'a'}, {name: "ionice", options: "c/class= n/classdata= p= P= u= t", how: 'a'},
	{name: "timeout", options: "s/signal= k/kill-after= preserve-status foreground v/verbose", skip: 1, how: 'a'},
	{name: "gtimeout", options: "s/signal= k/kill-after= preserve-status foreground v/verbose", skip: 1, how: 'a'},
	{name: "time", options: "f/format= o/output= a p v", how: 'a'}, {name: "gtime", options: "f/format= o/output= a p v", how: 'a'},
	{name: "stdbuf", options: "i/input= o/output= e/error=", how: 'a'}, {name: "command", options: "p v V", how: 'a'}, {name: "builtin", how: 'a'},
	{name: "exec", options: "a= c l", how: 'a'}, {name: "noglob", how: 'a'}, {name: "nocorrect", how: 'a'}, {name: "busybox", how: 'a'}, {name: "toybox", how: 'a'},
	{name: "doas", options: "u= C= n s", how: 'a'}, {name: "gosu", skip: 1, how: 'a'}, {name: "su-exec", skip: 1, how: 'a'},
	{name: "pkexec", options: "u/user=", how: 'a'}, {name: "setpriv", options: "reuid= regid= groups=", how: 'a'}, {name: "fakeroot", how: 'a'},
	{name: "caffeinate", options: "t= w=", how: 'a'}, {name: "dbus-run-session", how: 'a'}, {name: "xvfb-run", options: "a n/server-num= s/server-args= e/error-file=", how: 'a'},
	{name: "torsocks", how: 'a'}, {name: "proxychains", options: "f= q", how: 'a'}, {name: "proxychains4", options: "f= q", how: 'a'}, {name: "faketime", options: "f", skip: 1, how: 'a'},
	{name: "strace", options: "e= o= p= s= u= E= f", how: 'a'}, {name: "ltrace", options: "e= o= p= s= u= f", how: 'a'}, {name: "valgrind", how: 'a'},
	{name: "taskset", options: "p c a", skip: 1, how: 'a'}, {name: "chrt", options: "T= P= D= f r b i", skip: 1, how: 'a'}, {name: "chroot", skip: 1, how: 'a'},
	{name: "unshare", options: "r/map-root-user n/net m/mount f/fork p/pid", how: 'a'}, {name: "systemd-run", options: "p/property= u/unit= E/setenv= user pty t scope", how: 'a'},
	{name: "firejail", how: 'a'}, {name: "arch", how: 'a'}, {name: "winpty", how: 'a'}, {name: "wsl", options: "d= u= e", how: 'a'}, {name: "entr", options: "c d n p r s z", how: 'a'},
	{name: "dotenv", options: "e= f=", how: 'a'}, {name: "cross-env", how: 'a'}, {name: "bunx", options: "p/package= y", how: 'a'}, {name: "uvx", options: "from=", how: 'a'},
	{name: "npx", options: "y/yes p/package= c/call= q/quiet no-install", how: 'a', shell: "call"},
	{name: "npm", options: "c/call= y/yes package= prefix=", how: 's', sub: "exec|x", shell: "call"},
	{name: "pnpm", options: "C/dir= r w filter= c/shell-mode", how: 's', sub: "exec|dlx"}, {name: "yarn", options: "cwd=", how: 's', sub: "exec|dlx"}, {name: "bun", how: 's', sub: "x"},
	{name: "bundle", how: 's', sub: "exec"}, {name: "poetry", how: 's', sub: "run"}, {name: "pipenv", how: 's', sub: "run"}, {name: "pdm", how: 's', sub: "run"},
	{name: "uv", options: "with= p/python= project= directory= m/module", how: 's', sub: "run"}, {name: "hatch", how: 's', sub: "run"}, {name: "rye", how: 's', sub: "run"},
	{name: "conda", options: "n/name= p/prefix= no-capture-output", how: 's', sub: "run"}, {name: "mise", how: 's', sub: "exec|x"}, {name: "asdf", how: 's', sub: "exec"},
	{name: "op", how: 's', sub: "run"}, {name: "doppler", how: 's', sub: "run"}, {name: "devbox", how: 's', sub: "run"},
	{name: "dotenvx", options: "f=", how: 's', sub: "run"}, {name: "cargo", how: 's', sub: "watch", options: "x/exec= s/shell=", shell: "shell"},
	{name: "watch", options: "n/interval= d/differences? t b e g c x p", how: 'j'}, {name: "hyperfine", options: "w/warmup= r/runs= p/prepare= c/cleanup= N", how: 'e', shell: "prepare cleanup"},
	{name: "concurrently", options: "n/names= c/prefix-colors= k", how: 'e'}, {name: "su", options: "c/command= s/shell= l/login g= m p", how: '-', shell: "command"},
	{name: "runuser", options: "c/command= s/shell= u/user= l/login", how: 'a', shell: "command"}, {name: "script", options: "c/command= q e a f t? o=", how: '-', shell: "command"},
	{name: "nix-shell", options: "run= command= p/packages= I= A=", how: '-', shell: "run command"}, {name: "sg", options: "c=", skip: 1, how: 'e', shell: "c"},
	{name: "nix", options: "c/command=", how: '-', shell: "command"}, {name: "powershell", options: "Command= c= NoProfile", how: 'j'}, {name: "pwsh", options: "Command= c= NoProfile", how: 'j'},
	{name: "tmux", options: "t= c= n= s= d P h v x= y= F=", how: 'e'}, {name: "screen", options: "S= d m X", how: 'a'}, {name: "direnv", how: 's', sub: "exec"},
}

// wrapped follows a command into the command that it runs.
func (c *checker) wrapped(st *state, base string, words []string) (string, bool) {
	args := words[1:]
	switch base {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "oksh", "yash":
		return c.shellProgram(st, base, words), true
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
	p := newSpec(w.options).parse(args, true)
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
	for len(rest) > 0 && assignment(rest[0]) && w.how != 'e' { // cross-env A=b, uv run A=b
		rest = rest[1:]
	}
	rest = rest[min(w.skip, len(rest)):]
	switch w.how {
	case '-':
		return unknownValue(kindOpen, w.name), true
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

// shellProgram is sh and its kin: -c text, a script file, or a script on stdin.
func (c *checker) shellProgram(st *state, base string, words []string) string {
	n := withoutShell(st)
	args := words[1:]
	command, stdin := false, false
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+")) && len(args[0]) > 1 {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "--") {
			if a == "--command" {
				command = true
			}
			if slices.Contains([]string{"--rcfile", "--init-file"}, a) && len(args) > 0 {
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
	p := newSpec("i/ignore-environment 0/null u/unset= C/chdir= S/split-string= v/debug block-signal? default-signal? ignore-signal? a/argv0=").parse(args, true)
	if p.has("chdir") {
		n.dir = under(n.dir, p.last("chdir"))
	}
	for _, u := range p.values["unset"] {
		n.unset(u)
	}
	rest := p.args
	if p.has("split-string") {
		rest = append(splitCommand(p.last("split-string")), rest...)
	}
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
