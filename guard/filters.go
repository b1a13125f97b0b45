package guard

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// filtered is what the plain text filters make of their input, as far as it can
// be told without running them: a line that is put together in a pipe and handed
// to a shell is read as that shell will read it. ok is false where the filter,
// its options or its input are not followed.
func filtered(base string, args []string, in string) (out string, ok bool) {
	switch base {
	case "tac":
		if !isKnown(in) {
			return in, true
		}
	case "sort", "uniq", "paste", "column":
		return in, !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	case "sed", "gsed":
		return sedFilter(args, in)
	case "jq":
		return jqLiteral(args)
	}
	if !isKnown(in) {
		return "", false
	}
	switch base {
	case "rev":
		return mapLines(in, reverse), len(args) == 0
	case "tac":
		lines := strings.SplitAfter(in, "\n")
		slices.Reverse(lines)
		return strings.Join(lines, ""), len(args) == 0
	case "tr":
		return translate(args, in)
	case "cut":
		return cutFilter(args, in)
	case "grep", "egrep", "fgrep", "rg":
		return grepFilter(base, args, in)
	}
	return "", false
}

// jqLiteral is jq -r '"text"'.
func jqLiteral(args []string) (string, bool) {
	p := newSpec("r/raw-output n/null-input c s e M C a j").parse(args, false)
	if len(p.args) != 1 || !p.has("raw-output", "j") {
		return "", false
	}
	text, err := strconv.Unquote(strings.TrimSpace(p.args[0]))
	return text + "\n", err == nil && strings.HasPrefix(strings.TrimSpace(p.args[0]), `"`)
}

// mapLines applies f to each line.
func mapLines(in string, f func(string) string) string {
	var b strings.Builder
	for line := range strings.Lines(in) {
		text, end := strings.CutSuffix(line, "\n")
		b.WriteString(f(text))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// translate is tr.
func translate(args []string, in string) (string, bool) {
	p := newSpec("d/delete s/squeeze-repeats c/complement C t/truncate-set1").parse(args, false)
	if p.has("complement", "C", "squeeze-repeats") || len(p.args) == 0 {
		return "", false
	}
	from := trSet(p.args[0])
	if p.has("delete") {
		return strings.Map(func(r rune) rune {
			if slices.Contains(from, r) {
				return -1
			}
			return r
		}, in), len(p.args) == 1
	}
	if len(p.args) != 2 {
		return "", false
	}
	to := trSet(p.args[1])
	return strings.Map(func(r rune) rune {
		if i := slices.Index(from, r); i >= 0 && len(to) > 0 {
			return to[min(i, len(to)-1)]
		}
		return r
	}, in), true
}

// trSet is a set of characters as tr reads it: ranges, classes, escapes.
func trSet(s string) []rune {
	classes := strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9", "[:alpha:]", "A-Za-z", "[:alnum:]", "A-Za-z0-9", "[:space:]", " \t\n", "[:blank:]", " \t")
	r := []rune(ansiC(classes.Replace(s)))
	var out []rune
	for i := 0; i < len(r) && len(out) < 1024; i++ {
		if i+2 < len(r) && r[i+1] == '-' && r[i] <= r[i+2] && r[i+2]-r[i] < 512 {
			for ch := r[i]; ch <= r[i+2]; ch++ {
				out = append(out, ch)
			}
			i += 2
			continue
		}
		out = append(out, r[i])
	}
	return out
}

// cutFilter is cut -d -f and cut -c.
func cutFilter(args []string, in string) (string, bool) {
	p := newSpec("d/delimiter= f/fields= c/characters= b/bytes= s/only-delimited output-delimiter= z complement").parse(args, false)
	if len(p.args) > 0 || p.has("complement", "output-delimiter") {
		return "", false
	}
	list := p.last("fields") + p.last("characters") + p.last("bytes")
	sep := p.last("delimiter")
	if sep == "" {
		sep = "\t"
	}
	if p.has("characters", "bytes") {
		sep = ""
	}
	return mapLines(in, func(line string) string {
		parts := strings.Split(line, sep)
		if len(parts) == 1 && sep != "" {
			return line
		}
		var out []string
		for i, f := range parts {
			if inList(list, i+1) {
				out = append(out, f)
			}
		}
		return strings.Join(out, sep)
	}), list != ""
}

// inList reports whether n is in a list such as "1,3-5,7-".
func inList(list string, n int) bool {
	for r := range strings.SplitSeq(list, ",") {
		from, to, span := strings.Cut(r, "-")
		lo, err := strconv.Atoi(from)
		if err != nil {
			lo = 1
		}
		hi, err := strconv.Atoi(to)
		switch {
		case !span:
			hi = lo
		case err != nil:
			hi = 1 << 30
		}
		if n >= lo && n <= hi {
			return true
		}
	}
	return false
}

// grepFilter keeps the lines that match.
func grepFilter(base string, args []string, in string) (string, bool) {
	p := newSpec(`v/invert-match i/ignore-case E/extended-regexp F/fixed-strings G/basic-regexp P/perl-regexp o/only-matching e/regexp= n/line-number c/count l/files-with-matches
 q/quiet h/no-filename H s a/text w/word-regexp x/line-regexp A= B= C= m/max-count= color? f/file= L`).parse(args, false)
	patterns := p.values["regexp"]
	if len(patterns) == 0 && len(p.args) > 0 {
		patterns, p.args = p.args[:1], p.args[1:]
	}
	if len(p.args) > 0 || len(patterns) == 0 || p.has("count", "files-with-matches", "quiet", "line-number", "file", "L", "A", "B", "C") {
		return "", false
	}
	basic := base == "grep" && !p.has("extended-regexp", "perl-regexp")
	re, ok := compilePattern(strings.Join(patterns, "\n"), basic, base == "fgrep" || p.has("fixed-strings"), p.has("ignore-case"))
	if !ok {
		return "", false
	}
	var b strings.Builder
	for line := range strings.Lines(in) {
		text := strings.TrimSuffix(line, "\n")
		if re.MatchString(text) == p.has("invert-match") {
			continue
		}
		if p.has("only-matching") {
			text = strings.Join(re.FindAllString(text, -1), "\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String(), true
}

// compilePattern makes a Go expression of grep's and sed's. Lines are
// alternatives.
func compilePattern(pattern string, basic, fixed, fold bool) (*regexp.Regexp, bool) {
	if len(pattern) > 1000 || !isKnown(pattern) {
		return nil, false
	}
	var alternatives []string
	for one := range strings.SplitSeq(pattern, "\n") {
		switch {
		case fixed:
			one = regexp.QuoteMeta(one)
		case basic:
			one = fromBasic(one)
		}
		alternatives = append(alternatives, one)
	}
	text := strings.Join(alternatives, "|")
	if fold {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	return re, err == nil
}

// fromBasic turns a basic regular expression into an extended one: what is
// special with a backslash there is special without one here.
func fromBasic(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if strings.IndexByte("(){}|+?", s[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case strings.IndexByte("(){}|+?", s[i]) >= 0:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
