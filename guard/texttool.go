package guard

import (
	"encoding/base64"
	"path"
	"strconv"
	"strings"
)

// textTool returns the output of the tools that put text together, so that what
// goes on to a shell, a file or a variable is known.
func (c *checker) textTool(st *state, base string, args []string) (string, bool) {
	switch base {
	case "echo":
		return echo(args), true
	case "printf":
		if len(args) > 2 && args[0] == "-v" {
			st.set(args[1], printf(args[2:]))
			return "", true
		}
		return printf(args), true
	case "cat":
		return c.cat(st, args), true
	case "tee", "sponge":
		return c.tee(st, args), true
	case "pwd":
		return st.dir + "\n", true
	case "head", "tail":
		return headTail(st, base, args), true
	case "rev", "tac", "sort", "uniq", "cut", "tr", "awk", "gawk", "mawk", "sed", "gsed", "nl", "column", "paste", "fold", "jq", "yq", "grep", "egrep", "fgrep", "rg", "perl", "iconv", "base64":
		if base == "base64" && st.stdin != nil && len(args) == 1 && (args[0] == "-d" || args[0] == "--decode" || args[0] == "-D") {
			if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(*st.stdin)); err == nil {
				return plain(string(b)), true
			}
		}
		return c.filter(st, base, args)
	case "basename":
		if len(args) == 1 {
			return path.Base(args[0]) + "\n", true
		}
	case "dirname":
		if len(args) == 1 {
			return path.Dir(args[0]) + "\n", true
		}
	case "realpath", "readlink":
		if len(args) > 0 && !strings.HasPrefix(args[len(args)-1], "-") {
			return under(st.dir, args[len(args)-1]) + "\n", true
		}
	case "mktemp":
		return "/tmp/" + unknownValue(kindOpen, "mktemp"+strconv.Itoa(c.work)) + "\n", true
	case "which":
		if len(args) == 1 {
			return "/usr/bin/" + args[0] + "\n", true
		}
	case "nproc", "date", "whoami", "hostname", "uname", "sleep", "id":
		return unknownValue(kindOpen, base), true
	}
	return "", false
}

func echo(args []string) string {
	end, escapes := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if escapes {
		s = ansiC2(s)
	}
	return s + end
}

// ansiC2 decodes escapes and keeps unknown parts.
func ansiC2(s string) string {
	if isKnown(s) {
		return ansiC(s)
	}
	return s
}

// printf fills the format in, over and over while there are arguments.
func printf(args []string) string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	format, rest := ansiC2(args[0]), args[1:]
	var b strings.Builder
	for round := 0; round < 64; round++ {
		before := len(rest)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 >= len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			for i < len(format)-1 && strings.IndexByte("-+ #0123456789.*", format[i]) >= 0 {
				i++
			}
			if format[i] == '%' {
				b.WriteByte('%')
				continue
			}
			if len(rest) > 0 {
				if format[i] == 'b' {
					b.WriteString(ansiC2(rest[0]))
				} else {
					b.WriteString(rest[0])
				}
				rest = rest[1:]
			}
		}
		if len(rest) == 0 || len(rest) == before || b.Len() > maxValue {
			break
		}
	}
	return b.String()
}

func (c *checker) cat(st *state, args []string) string {
	out, files := "", 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") && a != "-" {
			continue
		}
		files++
		switch text, ok := c.files[under(st.dir, a)]; {
		case ok:
			out += text
		case (a == "-" || a == "/dev/stdin") && st.stdin != nil:
			out += *st.stdin
		default:
			out += unread(a)
		}
	}
	if files == 0 {
		if st.stdin == nil {
			return unknownValue(kindOpen, "stdin")
		}
		return *st.stdin
	}
	return out
}

func (c *checker) tee(st *state, args []string) string {
	text := unknownValue(kindOpen, "stdin")
	if st.stdin != nil {
		text = *st.stdin
	}
	add := false
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			add = add || a == "-a" || a == "--append"
			continue
		}
		c.writeFile(st, a, text, add)
	}
	return text
}

func headTail(st *state, base string, args []string) string {
	if st.stdin == nil {
		return unknownValue(kindOpen, base)
	}
	if !isKnown(*st.stdin) {
		return sameKind(*st.stdin)
	}
	n := 10
	for i, a := range args {
		v := strings.TrimPrefix(a, "-n")
		if a == "-n" && i+1 < len(args) {
			v = args[i+1]
		}
		if m, err := strconv.Atoi(strings.TrimPrefix(v, "-")); err == nil {
			n = max(m, 0)
		}
	}
	lines := strings.SplitAfter(*st.stdin, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if n > len(lines) {
		n = len(lines)
	}
	if base == "head" {
		return strings.Join(lines[:n], "")
	}
	return strings.Join(lines[len(lines)-n:], "")
}

// sameKind is what a filter makes of an input: unknown text of the same kind.
func sameKind(s string) string {
	for k, name := range func(y func(byte, string) bool) { unknownParts(s, y) } {
		if k != kindOpen {
			return unknownValue(k, name)
		}
	}
	return unknownValue(kindOpen, "text")
}

// filter handles the tools that pass their input on, changed.
func (c *checker) filter(st *state, base string, args []string) (string, bool) {
	c.writers(st, base, args)
	if out := c.code(st, base, args); out != "" {
		return out, true
	}
	if base == "sed" || base == "gsed" {
		c.sedRuns(st, args)
	}
	if base == "sed" || base == "gsed" {
		if scripts, _, _, files := sedScripts(args); len(files) > 0 && len(scripts) > 0 && len(args) > len(files) {
			if out, ok := sedFilter(args[:len(args)-len(files)], c.cat(st, files)); ok { // "sed s/^/x/ FILE"
				return out, true
			}
		}
	}
	if st.stdin == nil {
		if out, ok := jqLiteral(args); ok && base == "jq" {
			return out, true
		}
		return c.listing(base, append([]string{base}, args...)), true
	}
	if out, ok := filtered(base, args, *st.stdin); ok {
		return out, true
	}
	switch {
	case isKnown(*st.stdin):
		return unknownValue(kindOpen, base), true
	case kindOf(*st.stdin) == kindPaths: // no longer all that find printed
		return unknownValue(kindPaths, base), true
	}
	return sameKind(*st.stdin), true
}
