package guard

import (
	"strings"
)

// lang is what must be known of a programming language to find the commands
// that a one-line program starts. Strings that are not handed to such a function
// are only strings.
type lang struct {
	name    string
	comment string // begins a comment
	back    bool   // backquotes run a command
	calls   string // functions that run a command
}

var langs = []lang{
	{name: "python", comment: "#", calls: "system popen run call check_call check_output Popen getoutput getstatusoutput execv execvp execl execlp execve spawnl spawnlp spawnv spawnvp create_subprocess_shell create_subprocess_exec sh spawn spawnlpe spawnvpe execlpe execvpe"},
	{name: "perl", comment: "#", back: true, calls: "system exec qx open readpipe"},
	{name: "ruby", comment: "#", back: true, calls: "system exec spawn popen popen3 capture2 capture2e capture3 sh"},
	{name: "node", comment: "//", calls: "execSync exec spawn spawnSync execFile execFileSync execa execaSync execaCommand sh fork command"},
	{name: "php", comment: "//", back: true, calls: "system exec shell_exec passthru popen proc_open"},
	{name: "lua", comment: "--", calls: "execute popen"},
	{name: "awk", comment: "#", calls: "system"},
	{name: "tcl", comment: "#", calls: "exec"},
}

// language returns the language of an interpreter, or nil.
func language(program string) *lang {
	name := strings.TrimRight(program, "0123456789.")
	alias := map[string]string{
		"python": "python", "pypy": "python", "ipython": "python", "perl": "perl", "ruby": "ruby", "jruby": "ruby", "node": "node", "nodejs": "node", "bun": "node",
		"deno": "node", "tsx": "node", "ts-node": "node", "php": "php", "lua": "lua", "luajit": "lua", "awk": "awk", "gawk": "awk", "mawk": "awk", "nawk": "awk",
		"tclsh": "tcl", "expect": "tcl",
	}[name]
	for i := range langs {
		if langs[i].name == alias {
			return &langs[i]
		}
	}
	return nil
}

// code looks for a program in an interpreter's arguments or input.
func (c *checker) code(st *state, base string, args []string) {
	l := language(base)
	if l == nil {
		return
	}
	if text, ok := programText(l, args); ok {
		c.step(text, l.name+" program")
		c.scan(st, l, text)
		return
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") && a != "-" {
			if a == "-m" || a == "--version" || a == "-V" || a == "-h" || a == "--help" {
				return
			}
			continue
		}
		if text, ok := c.files[under(st.dir, a)]; ok {
			c.step(a, "a script that this text wrote")
			c.scan(st, l, text)
			return
		}
		if a != "-" && l.name != "awk" {
			c.undecided(base+" "+strings.Join(args, " "), "a script file")
			return
		}
		break
	}
	if st.stdin != nil && l.name != "awk" {
		c.scan(st, l, *st.stdin)
	}
}

// programText returns the program given on the command line.
func programText(l *lang, args []string) (string, bool) {
	flags := map[string]string{"python": "c", "perl": "eE", "ruby": "e", "node": "ep", "php": "r", "lua": "e", "tcl": "c"}[l.name]
	if l.name == "awk" {
		for i := 0; i < len(args); i++ {
			switch a := args[i]; {
			case a == "-v" || a == "-F" || a == "-f":
				i++
			case !strings.HasPrefix(a, "-"):
				return a, true
			}
		}
		return "", false
	}
	for i, a := range args {
		switch {
		case l.name == "node" && (a == "--eval" || a == "--print" || a == "eval") && i+1 < len(args):
			return args[i+1], true
		case strings.HasPrefix(a, "--eval="):
			return a[len("--eval="):], true
		case strings.HasPrefix(a, "--") || !strings.HasPrefix(a, "-"):
			if !strings.HasPrefix(a, "-") {
				return "", false
			}
		default:
			j := strings.IndexAny(a[1:], flags)
			if j < 0 || l.name == "perl" && (strings.HasPrefix(a, "-M") || strings.HasPrefix(a, "-I")) || l.name == "ruby" && (strings.HasPrefix(a, "-r") || strings.HasPrefix(a, "-I")) || l.name == "node" && a == "-r" {
				continue
			}
			if rest := a[1+j+1:]; rest != "" && l.name == "python" {
				return rest, true
			}
			if i+1 < len(args) {
				return strings.Join(args[i+1:i+2], ""), true
			}
		}
	}
	return "", false
}
