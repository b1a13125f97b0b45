package ignore

import (
	"strings"
	"unicode"
)

// A glob is a pattern as git's wildmatch.c reads it, a byte at a time.
type glob struct {
	text string
	path bool // only "**" matches "/"
	fold bool // what it is compared with is in lower case
}

// A star is where the matching goes on when what follows it does not match: with
// one more byte, or folder, for the star.
type star struct {
	after int // in the pattern
	from  int // in the name: the star stands for all before; -1: no star so far
}

// matches compares a whole name. To go back to the last "*" and the last "**" is
// enough: what stands before a star has matched as early as it can. So the time
// is bounded by the square of the name's length times the pattern's.
func (g *glob) matches(name string) bool {
	one, any := star{from: -1}, star{from: -1}
	byFolder := false // any stands for whole folders: it is "**/"
	p, n := 0, 0
	for {
		switch {
		case p == len(g.text):
			if n == len(name) {
				return true
			}
		case g.text[p] == '*':
			end, deep := g.stars(p)
			p = end
			switch {
			case !deep:
				one = star{p, n}
			case g.path && p < len(g.text) && g.text[p] == '/':
				p++
				any, one.from, byFolder = star{p, n}, -1, true
			default:
				any, one.from, byFolder = star{p, n}, -1, false
			}
			continue
		case n < len(name):
			if next, ok := g.one(p, name[n]); ok {
				p, n = next, n+1
				continue
			}
		}
		switch {
		case one.from >= 0 && one.from < len(name) && name[one.from] != '/':
			one.from++
			p, n = one.after, one.from
		case any.from < 0 || any.from == len(name):
			return false
		case byFolder:
			slash := strings.IndexByte(name[any.from:], '/')
			if slash < 0 {
				return false
			}
			any.from += slash + 1
			p, n, one.from = any.after, any.from, -1
		default:
			any.from++
			p, n, one.from = any.after, any.from, -1
		}
	}
}

// stars reads the stars at p. They are deep if they match "/": in a path, "**" that
// is a whole component.
func (g *glob) stars(p int) (end int, deep bool) {
	for end = p; end < len(g.text) && g.text[end] == '*'; end++ {
	}
	rest := g.text[end:]
	return end, !g.path || end-p > 1 && (p == 0 || g.text[p-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
}

// one compares a byte with what stands at p, no star, and returns where the pattern
// goes on.
func (g *glob) one(p int, c byte) (next int, ok bool) {
	switch g.text[p] {
	case '\\':
		p++
		return p + 1, p < len(g.text) && g.text[p] == c
	case '?':
		return p + 1, !g.path || c != '/'
	case '[':
		next, ok = g.set(p+1, c)
		return next, ok && (!g.path || c != '/')
	}
	return p + 1, g.text[p] == c || g.fold && isUpper(g.text[p]) && g.text[p]|0x20 == c
}

// set compares a byte with the set whose first byte is at p. One that does not end,
// or names an unknown class, matches nothing.
func (g *glob) set(p int, c byte) (next int, ok bool) {
	negated := p < len(g.text) && (g.text[p] == '!' || g.text[p] == '^')
	if negated {
		p++
	}
	found := false
	last := byte(0) // what a range may begin with
	for first := true; ; first = false {
		if p >= len(g.text) {
			return 0, false
		}
		b := g.text[p]
		switch {
		case b == ']' && !first:
			return p + 1, found != negated
		case b == '-' && last != 0 && p+1 < len(g.text) && g.text[p+1] != ']':
			p++
			if g.text[p] == '\\' {
				if p++; p == len(g.text) {
					return 0, false
				}
			}
			to := g.text[p]
			found = found || last <= c && c <= to || g.fold && isLower(c) && last <= c&^0x20 && c&^0x20 <= to
			last = 0
		case b == '[' && strings.HasPrefix(g.text[p+1:], ":"):
			end := strings.IndexByte(g.text[p+2:], ']')
			if end < 0 {
				return 0, false
			}
			name, isClass := strings.CutSuffix(g.text[p+2:p+2+end], ":")
			if !isClass {
				found, last = found || c == '[', '['
				break
			}
			in, known := classes[name]
			if !known {
				return 0, false
			}
			found, last = found || in(c) || g.fold && name == "upper" && isLower(c), 0
			p += 2 + end
		default:
			if b == '\\' {
				if p++; p == len(g.text) {
					return 0, false
				}
				b = g.text[p]
			}
			found, last = found || b == c, b
		}
		p++
	}
}

// classes are POSIX's, of ASCII.
var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  isLower,
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c < 0x80 && unicode.IsSpace(rune(c)) },
	"upper":  isUpper,
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
