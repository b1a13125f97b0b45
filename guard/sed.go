package guard

import (
	"regexp"
	"strings"
	"sync"
)

// sedCommand is one command of a sed script, as far as this package reads it.
type sedCommand struct {
	name    byte   // 's', 'd', 'p', 'e', 0 for others
	address string // what stands before the name
	from    string // the pattern of s
	to      string // the replacement of s, the command of e
	flags   string
}

// sedScripts returns the scripts among sed's arguments, and whether the words say
// -n and -E. files is what comes after.
func sedScripts(args []string) (scripts []string, quiet, extended bool, files []string) {
	p := newSpec("n/quiet silent e/expression= f/file= E/regexp-extended r i? in-place? l/line-length= s/separate u/unbuffered z/null-data b/binary posix debug sandbox").parse(args, false)
	scripts, files = p.values["expression"], p.args
	if len(scripts) == 0 && !p.has("file") && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	return scripts, p.has("quiet", "silent"), p.has("regexp-extended", "r"), files
}

// sedFilter is what sed makes of its input: substitutions, and lines that are
// chosen or left out by a pattern.
func sedFilter(args []string, in string) (string, bool) {
	scripts, quiet, extended, files := sedScripts(args)
	if len(files) > 0 || len(scripts) == 0 {
		return "", false
	}
	for _, script := range scripts {
		for _, cmd := range sedCommands(script) {
			out, ok := cmd.apply(in, quiet, extended)
			if !ok {
				return "", false
			}
			in = out
		}
	}
	return in, true
}

func (cmd sedCommand) apply(in string, quiet, extended bool) (string, bool) {
	switch cmd.name {
	case 's':
		return cmd.substitute(in, extended)
	case 'd', 'p':
		pattern, ok := strings.CutPrefix(cmd.address, "/")
		if !ok || !strings.HasSuffix(pattern, "/") || !isKnown(in) || quiet != (cmd.name == 'p') {
			return "", false
		}
		re, ok := compilePattern(strings.TrimSuffix(pattern, "/"), !extended, false, false)
		if !ok {
			return "", false
		}
		var b strings.Builder
		for line := range strings.Lines(in) {
			if re.MatchString(strings.TrimSuffix(line, "\n")) == (cmd.name == 'p') {
				b.WriteString(line)
			}
		}
		return b.String(), true
	}
	return "", false
}

// substitute is s/from/to/. In text of which parts are unknown only what matches
// anywhere is followed: "s/^/git add /".
func (cmd sedCommand) substitute(in string, extended bool) (string, bool) {
	if !isKnown(in) {
		switch cmd.from {
		case "^", "$", ".*", "^.*", "^.*$":
		default:
			return "", false
		}
	}
	re, ok := compilePattern(cmd.from, !extended, false, strings.ContainsAny(cmd.flags, "iI"))
	if !ok {
		return "", false
	}
	to := sedReplacement(cmd.to)
	return mapLines(in, func(line string) string {
		if strings.Contains(cmd.flags, "g") {
			return re.ReplaceAllString(line, to)
		}
		at := re.FindStringSubmatchIndex(line)
		if at == nil {
			return line
		}
		return line[:at[0]] + string(re.ExpandString(nil, to, line, at)) + line[at[1]:]
	}), true
}

// sedReplacement turns "\1" and "&" into Go's "${1}" and "${0}".
func sedReplacement(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch {
			case s[i] >= '0' && s[i] <= '9':
				b.WriteString("${" + s[i:i+1] + "}")
			case s[i] == 'n':
				b.WriteByte('\n')
			default:
				b.WriteByte(s[i])
			}
		case s[i] == '&':
			b.WriteString("${0}")
		case s[i] == '$':
			b.WriteString("$$")
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

var sedAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:[0-9$]+|/(?:[^/\\]|\\.)*/I?)(?:,(?:[0-9$+~]+|/(?:[^/\\]|\\.)*/))?)?\s*!?\s*`)
})

// sedCommands splits a script at line ends and semicolons outside of s commands.
func sedCommands(script string) []sedCommand {
	var out []sedCommand
	for script != "" && len(out) < 100 {
		script = strings.TrimLeft(script, " \t\n;{}")
		if script == "" {
			break
		}
		address := sedAddress().FindString(script)
		script = script[len(address):]
		cmd := sedCommand{address: strings.TrimSpace(address)}
		if script == "" {
			break
		}
		cmd.name, script = script[0], script[1:]
		switch cmd.name {
		case 's':
			if script == "" {
				return out
			}
			script = cmd.readSubstitute(script)
		case 'e', 'a', 'i', 'c', 'r', 'w', '#', 'b', 't': // the rest of the line is theirs
			cmd.to, script, _ = strings.Cut(script, "\n")
			cmd.to = strings.TrimSpace(cmd.to)
		default:
			_, rest, found := strings.Cut(script, ";")
			if line, after, ok := strings.Cut(script, "\n"); ok && len(line) < len(script)-len(rest) {
				rest, found = after, true
			}
			if script = ""; found {
				script = rest
			}
		}
		out = append(out, cmd)
	}
	return out
}

// readSubstitute reads "/from/to/flags" and returns what follows.
func (cmd *sedCommand) readSubstitute(s string) string {
	sep := s[0]
	part := func(s string) (string, string) {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			switch {
			case s[i] == sep:
				return b.String(), s[i+1:]
			case s[i] == '\\' && i+1 < len(s) && s[i+1] == sep:
				b.WriteByte(sep)
				i++
			case s[i] == '\\' && i+1 < len(s):
				b.WriteString(s[i : i+2])
				i++
			default:
				b.WriteByte(s[i])
			}
		}
		return b.String(), ""
	}
	cmd.from, s = part(s[1:])
	cmd.to, s = part(s)
	n := 0
	for n < len(s) && strings.IndexByte("gpiImMe0123456789", s[n]) >= 0 {
		n++
	}
	cmd.flags = s[:n]
	return s[n:]
}

// sedRuns looks at the commands that sed hands to a shell: "1e git stash" and
// "s/x/git stash/e" (GNU sed).
func (c *checker) sedRuns(st *state, args []string) {
	scripts, _, _, _ := sedScripts(args)
	for _, script := range scripts {
		for _, cmd := range sedCommands(script) {
			if cmd.to != "" && (cmd.name == 'e' || cmd.name == 's' && strings.Contains(cmd.flags, "e")) {
				c.nested(st, cmd.to, "sed runs it")
			}
		}
	}
}
