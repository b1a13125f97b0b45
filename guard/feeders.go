package guard

import (
	"slices"
	"strings"
)

// flock FILE cmd…, or flock FILE -c 'text'.
func (c *checker) flock(st *state, args []string) string {
	p := newSpec("s/shared x/exclusive n/nonblock w/timeout= E/conflict-exit-code= o/close F/no-fork u/unlock v/verbose").parse(args, true)
	if len(p.args) < 2 {
		return ""
	}
	rest := p.args[1:]
	if (rest[0] == "-c" || rest[0] == "--command") && len(rest) > 1 {
		return c.nested(st, rest[1], "flock -c runs it")
	}
	return c.run(withoutShell(st), rest)
}

// parallel runs its words with the inputs after ":::", or every line of input.
func (c *checker) parallel(st *state, args []string) string {
	p := newSpec("j/jobs= k/keep-order I= n/max-args= N= a/arg-file= d/delimiter= C/colsep= X m tag bar joblog= results= S/sshlogin= timeout= delay= retries= halt= q/quote v dry-run").parse(args, true)
	if p.has("dry-run") {
		return unknownValue(kindOpen, "parallel")
	}
	words, inputs := p.args, []string(nil)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ":::") }); i >= 0 {
		words, inputs = words[:i], words[i+1:]
	}
	if len(inputs) == 0 {
		inputs = []string{inputOf(st)}
		if isKnown(inputs[0]) {
			inputs = strings.Split(strings.TrimSpace(inputs[0]), "\n")
		}
	}
	for i, in := range inputs {
		if i == maxRounds {
			break
		}
		line := strings.Join(words, " ")
		if strings.Contains(line, "{") {
			for _, r := range []string{"{}", "{.}", "{/}", "{//}", "{1}"} {
				line = strings.ReplaceAll(line, r, in)
			}
		} else {
			line = strings.TrimSpace(line + " " + in)
		}
		c.nested(st, line, "parallel runs it")
	}
	return unknownValue(kindOpen, "parallel")
}

// xargs appends the words of its input to a command.
func (c *checker) xargs(st *state, args []string) string {
	p := newSpec(`0/null a/arg-file= d/delimiter= E= e? I= i? L/max-lines= l? n/max-args= P/max-procs= o/open-tty p/interactive r/no-run-if-empty s/max-chars= t/verbose
 x/exit J= R= replace? process-slot-var=`).parse(args, true)
	words := p.args
	if len(words) == 0 {
		return inputOf(st)
	}
	in := inputOf(st)
	inputs := []string{in}
	if isKnown(in) {
		inputs = splitCommand(strings.ReplaceAll(in, "\n", " "))
		if p.has("I", "d") {
			inputs = strings.Split(strings.TrimRight(in, "\n"), "\n")
		}
		if p.has("null") {
			inputs = []string{in}
		}
	} else if inputs[0] = strings.TrimSpace(in); strings.ContainsAny(inputs[0], " \n\t") {
		inputs[0] = sameKind(in)
	}
	n := withoutShell(st)
	n.stdin = nil
	token := p.last("I")
	if p.has("replace", "i") && token == "" {
		token = "{}"
	}
	if token == "" {
		token = p.last("J")
	}
	if token == "" {
		return c.run(n, slices.Concat(words, inputs))
	}
	out := ""
	for i, one := range inputs {
		if i == maxRounds {
			break
		}
		cmd := make([]string, len(words))
		for j, w := range words {
			cmd[j] = strings.ReplaceAll(w, token, one)
		}
		out += c.run(n, cmd)
	}
	return out
}

// bwrap is bubblewrap, whose options take up to two values.
func (c *checker) bwrap(st *state, args []string) string {
	n := withoutShell(st)
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		name := args[0]
		args = args[1:]
		if name == "--" {
			break
		}
		took := 0
		switch name[2:] {
		case "bind", "bind-try", "dev-bind", "dev-bind-try", "ro-bind", "ro-bind-try", "setenv", "symlink", "file", "chmod", "bind-data", "ro-bind-data", "bind-fd", "ro-bind-fd":
			took = 2
		case "args", "argv0", "userns", "userns2", "pidns", "uid", "gid", "hostname", "chdir", "unsetenv", "lock-file", "sync-fd", "remount-ro", "proc", "dev", "tmpfs",
			"mqueue", "dir", "cap-add", "cap-drop", "seccomp", "exec-label", "file-label", "block-fd", "info-fd", "perms", "size", "json-status-fd":
			took = 1
		}
		if name == "--chdir" && len(args) > 0 {
			n.dir = under(n.dir, args[0])
		}
		args = args[min(took, len(args)):]
	}
	if len(args) == 0 {
		return ""
	}
	return c.run(n, args)
}
