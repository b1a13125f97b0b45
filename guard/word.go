package guard

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fieldBuilder puts the fields of a word together.
type fieldBuilder struct {
	fields []string
	cur    strings.Builder
	any    bool
	ifs    string // what separates fields; "" means white space
}

func (b *fieldBuilder) add(s string) {
	if b.cur.Len()+len(s) > maxValue {
		s = unknownValue(kindOpen, "long")
	}
	b.cur.WriteString(s)
	b.any = true
}

func (b *fieldBuilder) end() {
	if b.any {
		b.fields = append(b.fields, b.cur.String())
	}
	b.cur.Reset()
	b.any = false
}

// split adds the result of an unquoted expansion: the characters of IFS separate
// fields.
func (b *fieldBuilder) split(s string) {
	ifs := b.ifs
	if ifs == "" {
		ifs = defaultIFS
	}
	start := -1
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(ifs, s[i]) >= 0 {
			if start >= 0 {
				b.add(s[start:i])
				start = -1
			}
			b.end()
			continue
		}
		if start < 0 {
			start = i
		}
		if s[i] == mark { // never cut an unknown part in two
			if j := strings.IndexByte(s[i+1:], mark); j >= 0 {
				i += 1 + j
			}
		}
	}
	if start >= 0 {
		b.add(s[start:])
	}
}

// fields expands words to a command's arguments.
func (c *checker) fields(st *state, words []*syntax.Word) []string {
	b := &fieldBuilder{ifs: st.ifs()}
	for _, w := range words {
		for _, one := range c.braces(w) {
			c.parts(st, one.Parts, b, quoteNone)
			b.end()
			if len(b.fields) > 8192 {
				return append(b.fields[:8192], unknownValue(kindOpen, "more"))
			}
		}
	}
	return b.fields
}

// braces expands {a,b}; too large an expansion stays as it stands.
func (c *checker) braces(w *syntax.Word) []*syntax.Word {
	split := *w // SplitBraces changes the word it is given, and a loop comes here again
	if !syntax.SplitBraces(&split) {
		return []*syntax.Word{w}
	}
	var out []*syntax.Word
	for one, err := range expand.BracesSeq(nil, &split) {
		if err != nil || len(out) >= 256 {
			c.unknown = true
			break
		}
		out = append(out, one)
	}
	return out
}

// word expands a word to one string, without splitting.
func (c *checker) word(st *state, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	b := &fieldBuilder{}
	c.parts(st, w.Parts, b, quoteWord)
	return b.cur.String()
}

// heredoc expands the body of an unquoted here-document.
func (c *checker) heredoc(st *state, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	b := &fieldBuilder{}
	c.parts(st, w.Parts, b, quoteHeredoc)
	return b.cur.String()
}

type quoting int

const (
	quoteNone    quoting = iota // fields split
	quoteWord                   // no splitting, backslash escapes anything
	quoteDouble                 // inside "…"
	quoteHeredoc                // inside <<EOF
)

func (c *checker) parts(st *state, parts []syntax.WordPart, b *fieldBuilder, q quoting) {
	put := b.add
	if q == quoteNone {
		put = b.split
	}
	for i, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			s := unescape(x.Value, q)
			if i == 0 && (q == quoteNone || q == quoteWord) && strings.HasPrefix(x.Value, "~") {
				s = st.tilde(s)
			}
			b.add(strings.ReplaceAll(s, placeholder, string(rune(mark))))
		case *syntax.SglQuoted:
			if x.Dollar {
				b.add(ansiC(x.Value))
			} else {
				b.add(strings.ReplaceAll(x.Value, placeholder, string(rune(mark))))
			}
		case *syntax.DblQuoted:
			c.doubleQuoted(st, x, b, q)
		case *syntax.ParamExp:
			c.param(st, x, b, q)
		case *syntax.CmdSubst:
			put(strings.TrimRight(c.substitute(st, x.Stmts), "\n"))
		case *syntax.ArithmExp:
			c.substitutions(st, x)
			put(unknownValue(kindOpen, "number"))
		case *syntax.ProcSubst:
			out := c.stmts(st.clone(), x.Stmts)
			name := "/dev/fd/" + strconv.Itoa(63+len(c.files))
			if x.Op == syntax.CmdIn {
				c.files[name] = out
			}
			b.add(name)
		case *syntax.ExtGlob:
			b.add("*")
		default:
			c.substitutions(st, part)
			put(unknownValue(kindOpen, "word"))
		}
	}
}

// substitute runs $(…): an empty set of statements such as $(< file) reads.
func (c *checker) substitute(st *state, stmts []*syntax.Stmt) string {
	sub := st.clone()
	if len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 {
		saved := sub.stdin
		sub.stdin = nil
		c.redirect(sub, stmts[0].Redirs)
		in := sub.stdin
		sub.stdin = saved
		if in != nil {
			return *in
		}
		return unknownValue(kindOpen, "file")
	}
	return c.stmts(sub, stmts)
}

func (c *checker) doubleQuoted(st *state, x *syntax.DblQuoted, b *fieldBuilder, q quoting) {
	if len(x.Parts) == 1 && q == quoteNone {
		if pe, ok := x.Parts[0].(*syntax.ParamExp); ok {
			if list, ok := c.list(st, pe); ok { // "$@" and "${a[@]}" are one field each
				for i, v := range list {
					if i > 0 {
						b.end()
					}
					b.add(v)
				}
				return
			}
		}
	}
	b.any = true
	c.parts(st, x.Parts, b, quoteDouble)
}

// unescape removes the backslashes of a literal.
func unescape(s string, q quoting) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		next := s[i+1]
		switch {
		case next == '\n':
			i++
		case q == quoteNone || q == quoteWord || strings.IndexByte("$`\\", next) >= 0 || q == quoteDouble && next == '"':
			b.WriteByte(next)
			i++
		default:
			b.WriteByte('\\')
		}
	}
	return b.String()
}

// ansiC decodes the escapes of $'…'.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch ch := s[i]; ch {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a', 'b', 'e', 'E', 'f', 'v':
			b.WriteByte(' ')
		case 'x':
			i += number(&b, s[i+1:], 2, 16)
		case 'u':
			i += number(&b, s[i+1:], 4, 16)
		case 'U':
			i += number(&b, s[i+1:], 8, 16)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i += number(&b, s[i:], 3, 8) - 1
		default:
			b.WriteByte(ch)
		}
	}
	return strings.ReplaceAll(b.String(), string(rune(mark)), "")
}

// number writes the character that up to n digits name and returns how many
// digits there were.
func number(b *strings.Builder, s string, n, base int) int {
	end := 0
	for end < len(s) && end < n {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	v, err := strconv.ParseUint(s[:end], base, 32)
	if err != nil || end == 0 {
		return end
	}
	if v < utf8.RuneSelf || n > 3 {
		b.WriteRune(rune(v))
	} else {
		b.WriteByte(byte(v))
	}
	return end
}
