package guard

import (
	"path"
	"slices"
	"strings"
)

// command runs what the arguments of a starting function amount to.
func (s *codeScan) command(name string, all []argument) {
	st, args := s.st, []argument{}
	for _, a := range all {
		switch {
		case a.name == "args" || a.name == "cmd" || a.name == "command":
			args = append([]argument{a}, args...)
		case a.name == "input" && a.known:
			st = withInput(s.st, a.text)
		case a.fields["input"].known:
			st = withInput(s.st, a.fields["input"].text)
		case a.fields["args"].list != nil: // new Deno.Command("git", {args: ["push"]})
			args = append(args, a.fields["args"])
		case a.name == "" && a.fields == nil:
			args = append(args, a)
		}
	}
	if name == "open" {
		if args = openedCommand(args); args == nil {
			return
		}
	}
	for (strings.HasPrefix(name, "spawn") || s.lang.name == "emacs") && len(args) > 1 && !args[0].known { // os.spawnlp(os.P_WAIT, …)
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	if words := s.argv(name, args); words != nil {
		s.run(st, words)
		return
	}
	if args[0].known {
		s.nested(st, args[0].text, s.lang.name+" runs it")
	}
}

func withInput(st *state, text string) *state {
	n := st.clone()
	n.stdin = &text
	return n
}

// openedCommand is what perl's open starts: open(F, "-|", "git", "stash"),
// open(F, "git stash |"); nil when it opens a file.
func openedCommand(args []argument) []argument {
	i := slices.IndexFunc(args, func(a argument) bool { return strings.Contains(a.text, "|") })
	switch {
	case i < 0:
		return nil
	case args[i].text == "-|" || args[i].text == "|-":
		return args[i+1:]
	}
	args = slices.Clone(args[i:])
	args[0].text = strings.Trim(strings.TrimSpace(args[0].text), "|")
	return args
}

// argv is the argument list that a function gets, or nil when it gets a line for
// a shell.
func (s *codeScan) argv(name string, args []argument) []string {
	a := args[0]
	switch {
	case a.list != nil:
		return a.list
	case !a.known:
		return nil
	case len(args) > 1 && args[1].list != nil:
		list := args[1].list
		if s.lang.name == "python" && len(list) > 0 && path.Base(list[0]) == path.Base(a.text) && (strings.HasPrefix(name, "exec") || strings.HasPrefix(name, "spawn") || strings.HasPrefix(name, "posix_spawn")) {
			list = list[1:]
		}
		if strings.ContainsAny(a.text, " \t") && len(list) == 0 {
			return nil
		}
		return append([]string{a.text}, list...)
	case len(args) > 1 && (args[1].known || s.lang.name == "emacs") && !strings.ContainsAny(a.text, " \t"):
		words := []string{a.text}
		for _, x := range args[1:] {
			switch {
			case x.known && x.list == nil:
				words = append(words, x.text)
			case x.list != nil:
				words = append(words, x.list...)
			case s.lang.name != "emacs":
				words = append(words, unknownValue(kindOpen, "argument"))
			}
		}
		if strings.HasPrefix(name, "execl") || strings.HasPrefix(name, "spawnl") {
			words = append(words[:1], words[min(2, len(words)):]...)
		}
		return words
	}
	return nil
}

var fileWriters = words{text: `rmtree remove removeSync unlink unlinkSync rmdir rename renameSync replace rmSync rm rm_rf rm_r delete writeFileSync writeFile
 appendFileSync mkdirSync makedirs mkdir move symlink chmod truncate write_text write_bytes touch outputFileSync file_put_contents write`}

// copiers write the last of their arguments only.
var copiers = words{text: "copy copy2 copyfile copytree copyFileSync cpSync cp cp_r copyFile link symlinkSync symlink_to hardlink_to"}

// writes looks for functions that write or delete a file inside .git.
func (s *codeScan) writes(i int, name string, args []argument) {
	var paths []string
	for _, a := range args {
		if a.known && a.list == nil && a.name == "" {
			paths = append(paths, a.text)
		}
	}
	switch {
	case name == "open" && s.lang.name == "perl":
		for _, p := range paths {
			if to := strings.TrimLeft(p, "+"); strings.HasPrefix(to, ">") {
				s.protect(s.st, s.lang.name, []string{strings.Trim(to, "> "), paths[len(paths)-1]})
			}
		}
	case name == "open":
		if len(paths) > 1 && strings.ContainsAny(paths[1], "wax+") {
			s.protect(s.st, s.lang.name, paths[:1])
		}
	case copiers.has(name):
		if len(paths) > 0 && s.onFiles(i, name) {
			s.protect(s.st, s.lang.name, paths[len(paths)-1:])
		}
	case fileWriters.has(name) && s.onFiles(i, name):
		if s.is(i-1, ".") && name != "write" { // Path('.git/HEAD').unlink(), (Path('.git') / 'HEAD').unlink()
			if owner := s.before(i - 2); owner.known {
				paths = append(paths, owner.text)
			}
		}
		if name == "write" && (s.lang.name != "ruby" || len(paths) > 0 && s.is(i-1, ".") && s.tokens[i-2].text != "File") {
			return
		}
		s.protect(s.st, s.lang.name, paths)
	}
}

// before evaluates the bracketed operand that ends at token i.
func (s *codeScan) before(i int) argument {
	if !s.is(i, ")") {
		return argument{}
	}
	depth := 0
	for ; i >= 0; i-- {
		if s.is(i, ")") {
			depth++
		}
		if s.is(i, "(") {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if i > 0 && s.tokens[i-1].kind == 'i' {
		i--
	}
	if i < 0 {
		return argument{}
	}
	a, _ := s.primary(i)
	return a
}

// primary evaluates the operand at token i with its first brackets only.
func (s *codeScan) primary(i int) (argument, int) {
	if s.tokens[i].kind == 'i' && s.is(i+1, "(") {
		args, end := s.args(i+2, true)
		return s.method(argument{path: s.tokens[i].text}, "", args), end + 1
	}
	return s.group(i)
}
