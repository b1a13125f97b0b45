package coordinator

import (
	"slices"
	"unicode/utf8"
)

// token is one element of a name's pattern: a star, or a set of runes.
type token struct {
	star   bool
	negate bool // every rune but those in spans
	spans  []span
}

// span is a range of runes, both ends included.
type span struct{ lo, hi rune }

// invalidByte stands for a byte that is not UTF-8: such a byte is a symbol of
// its own, above all runes.
const invalidByte = utf8.MaxRune + 1

func oneRune(r rune) token { return token{spans: []span{{r, r}}} }

func literal(name string) []token {
	var out []token
	for i := 0; i < len(name); {
		r, n := decode(name[i:])
		out = append(out, oneRune(r))
		i += n
	}
	return out
}

func decode(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return invalidByte + rune(s[0]), 1
	}
	return r, n
}

// tokenize reads one segment of a pattern without braces, in doublestar's
// syntax: * ? [a-z] [^a-z] [!a-z] and a backslash that takes the next rune's
// meaning away.
func tokenize(part string) []token {
	var out []token
	for i := 0; i < len(part); {
		r, n := decode(part[i:])
		switch r {
		case '*':
			if len(out) == 0 || !out[len(out)-1].star {
				out = append(out, token{star: true})
			}
		case '?':
			out = append(out, token{negate: true})
		case '[':
			if end := classEnd(part, i); end > i {
				out, n = append(out, class(part[i+1:end])), end+1-i
				break
			}
			out = append(out, oneRune(r))
		case '\\':
			if i+n < len(part) {
				next, m := decode(part[i+n:])
				out, n = append(out, oneRune(next)), n+m
				break
			}
			out = append(out, oneRune(r))
		default:
			out = append(out, oneRune(r))
		}
		i += n
	}
	return out
}

// class reads what stands between brackets.
func class(text string) token {
	var t token
	if text[0] == '^' || text[0] == '!' {
		t.negate, text = true, text[1:]
	}
	next := func() rune {
		r, n := decode(text)
		if r == '\\' && n < len(text) {
			text = text[n:]
			r, n = decode(text)
		}
		text = text[n:]
		return r
	}
	for text != "" {
		s := span{lo: next()}
		s.hi = s.lo
		if len(text) > 1 && text[0] == '-' {
			text = text[1:]
			s.hi = next()
		}
		t.spans = append(t.spans, s)
	}
	return t
}

func (t token) has(r rune) bool {
	in := slices.ContainsFunc(t.spans, func(s span) bool { return s.lo <= r && r <= s.hi })
	return in != t.negate
}

// meets reports whether a rune is in both sets. If there is one, there is one
// among the ends of the spans and their neighbours.
func (t token) meets(u token) bool {
	if t.negate && u.negate {
		return true // the spans of a pattern are fewer than the runes
	}
	for _, spans := range [][]span{t.spans, u.spans} {
		for _, s := range spans {
			for _, r := range []rune{s.lo, s.hi, s.lo - 1, s.hi + 1} {
				if r >= 0 && t.has(r) && u.has(r) {
					return true
				}
			}
		}
	}
	return false
}
