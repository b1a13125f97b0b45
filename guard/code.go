package guard

import (
	"slices"
	"strings"
)

// lang is what must be known of a programming language to find the commands
// that a one-line program starts. Strings that are not handed to such a function
// are only strings.
type lang struct {
	name    string
	comment string // begins a comment
	back    bool   // backquotes run a command
	interp  byte   // how variables stand in "…", see interpolations
	calls   string // functions that run a command
	needs   string // calls count only in a program that has one of these in it; "" always
	flags   string // short options that a program follows, glued or as the next word
	valued  string // short options that take another value
	glued   string // those of valued whose value is only ever glued on
	longs   string // long options that a program follows
	values  string // long options that take another value
}

var langs = []lang{
	{name: "python", comment: "#", calls: `system popen run call check_call check_output Popen getoutput getstatusoutput execv execvp execl execlp execlpe execve execvpe spawnl
 spawnlp spawnlpe spawnv spawnvp spawnvpe posix_spawn posix_spawnp create_subprocess_shell create_subprocess_exec sh spawn`, flags: "c", valued: "WX", values: "--check-hash-based-pycs"},
	{name: "perl", comment: "#", back: true, interp: '$', calls: "system exec qx open readpipe", flags: "eE", valued: "MmIiDFCxV", glued: "iDFCxV"},
	{name: "ruby", comment: "#", back: true, interp: '#', calls: "system exec spawn popen popen3 capture2 capture2e capture3 sh", flags: "e", valued: "rIECFSTKWx0i", glued: "ETKWx0i"},
	{name: "node", comment: "//", calls: "execSync exec spawn spawnSync execFile execFileSync execa execaSync execaCommand sh fork command Command", needs: "child_process execa zx shelljs Bun Deno spawn",
		flags: "ep", valued: "rC", longs: "--eval --print eval", values: "--require --import --input-type --loader --experimental-loader --conditions"},
	{name: "php", comment: "//", back: true, interp: '$', calls: "system exec shell_exec passthru popen proc_open", flags: "rBE", valued: "dczF"},
	{name: "lua", comment: "--", calls: "execute popen", flags: "e", valued: "l"},
	{name: "awk", comment: "#", calls: "system"},
	{name: "tcl", comment: "#", calls: "exec", flags: "c"},
	{name: "r", comment: "#", calls: "system system2 shell", flags: "e"},
	{name: "julia", comment: "#", back: true, interp: '$', calls: "run success readchomp", flags: "eE", valued: "LtpJ"},
	{name: "elixir", comment: "#", interp: '#', calls: "cmd shell", flags: "e", valued: "r"},
	{name: "groovy", comment: "//", flags: "e"},
	{name: "applescript", comment: "--", calls: "script", flags: "e", valued: "ls"},
	{name: "emacs", comment: ";", calls: `shell-command shell-command-to-string async-shell-command call-process-shell-command call-process start-process process-file process-lines`,
		longs: "--eval -eval --execute -execute"},
}

// languageName is the language of an interpreter, or "".
func languageName(program string) string {
	switch program {
	case "python", "pypy", "ipython":
		return "python"
	case "perl":
		return "perl"
	case "ruby", "jruby":
		return "ruby"
	case "node", "nodejs", "bun", "deno", "tsx", "ts-node", "zx":
		return "node"
	case "php":
		return "php"
	case "lua", "luajit":
		return "lua"
	case "awk", "gawk", "mawk", "nawk":
		return "awk"
	case "tclsh", "expect":
		return "tcl"
	case "R", "Rscript":
		return "r"
	case "julia":
		return "julia"
	case "elixir", "iex":
		return "elixir"
	case "groovy", "scala":
		return "groovy"
	case "osascript":
		return "applescript"
	case "emacs", "emacsclient":
		return "emacs"
	}
	return ""
}

// language returns the language of an interpreter, or nil.
func language(program string) *lang {
	name := languageName(strings.TrimRight(program, "0123456789."))
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(langs, func(l lang) bool { return l.name == name })
	return &langs[i]
}

// code looks for a program in an interpreter's arguments or input and returns
// what it prints, "" when that is not known.
func (c *checker) code(st *state, base string, args []string) string {
	l := language(base)
	if l == nil {
		return ""
	}
	if l.name == "awk" {
		return c.awk(st, l, args)
	}
	texts, rest := l.programs(args)
	if len(texts) > 0 {
		text := strings.Join(texts, "\n")
		c.step(text, l.name+" program")
		return c.scan(st, l, text, nil)
	}
	for _, a := range rest {
		if strings.HasPrefix(a, "-") && a != "-" {
			if a == "-m" || a == "--version" || a == "-V" || a == "-h" || a == "--help" {
				return ""
			}
			continue
		}
		if text, ok := c.files[under(st.dir, a)]; ok {
			c.step(a, "a script that this text wrote")
			return c.scan(st, l, text, nil)
		}
		if a != "-" && l.name != "emacs" {
			c.undecided(base+" "+strings.Join(args, " "), "a script file")
			return ""
		}
		break
	}
	if st.stdin != nil && l.name != "emacs" {
		return c.scan(st, l, *st.stdin, nil)
	}
	return ""
}

// programs returns the programs given on the command line, and the words from the
// first that is no option.
func (l *lang) programs(args []string) (texts, rest []string) {
	longs, values := strings.Fields(l.longs), strings.Fields(l.values)
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, glued, isGlued := strings.Cut(a, "=")
		switch {
		case slices.Contains(longs, name):
			if !isGlued && i+1 < len(args) {
				i++
				glued = args[i]
			}
			texts = append(texts, glued)
		case slices.Contains(values, a):
			i++
		case !strings.HasPrefix(a, "-") || a == "-":
			if len(texts) > 0 && l.name == "emacs" { // options go on after operands
				continue
			}
			return texts, args[i:]
		case strings.HasPrefix(a, "--"):
		default:
			text, took, found := l.short(a[1:], args[i+1:])
			if i += took; found {
				texts = append(texts, text)
				if l.name == "python" || l.name == "php" { // what follows are the program's arguments
					return texts, nil
				}
			}
		}
	}
	return texts, nil
}

// short reads a bundle of short options.
func (l *lang) short(letters string, rest []string) (text string, took int, found bool) {
	for i := range len(letters) {
		value := letters[i+1:]
		if l.name == "node" && value != "" && strings.Trim(value, "epi") == "" { // -pe
			continue
		}
		program := strings.IndexByte(l.flags, letters[i]) >= 0
		if !program && strings.IndexByte(l.valued, letters[i]) < 0 {
			if letters[i] == 'm' && l.name == "python" {
				return "", len(rest), false
			}
			continue
		}
		if value == "" && strings.IndexByte(l.glued, letters[i]) < 0 && len(rest) > 0 {
			value, took = rest[0], 1
		}
		return value, took, program
	}
	return "", took, false
}

// awk finds the program, and the variables that -v sets.
func (c *checker) awk(st *state, l *lang, args []string) string {
	vars := map[string]argument{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-v" && i+1 < len(args):
			i++
			if k, v, ok := strings.Cut(args[i], "="); ok {
				vars[k] = textArgument(v)
			}
		case a == "-F" || a == "-f" || a == "-i":
			i++
		case strings.HasPrefix(a, "-v"):
			if k, v, ok := strings.Cut(a[2:], "="); ok {
				vars[k] = textArgument(v)
			}
		case !strings.HasPrefix(a, "-"):
			c.step(a, "awk program")
			n := st
			if i+1 < len(args) { // it reads files
				n = st.clone()
				n.stdin = nil
				if text := c.cat(n, args[i+1:]); isKnown(text) {
					n.stdin = &text
				}
			}
			return c.scan(n, l, a, vars)
		}
	}
	return ""
}
