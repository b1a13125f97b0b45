package coordinator

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Overlaps reports whether some line of some file is in both targets. It is
// exact for files, folders and patterns alike: two patterns overlap when a path
// exists that both match, whether there is such a file or not.
func (t Target) Overlaps(u Target) bool {
	if t.Kind == KindFile && u.Kind == KindFile {
		return t.Path == u.Path && t.Lines.Overlaps(u.Lines)
	}
	for _, a := range t.shapes() {
		for _, b := range u.shapes() {
			if pathsMeet(a, b) {
				return true
			}
		}
	}
	return false
}

// Holds reports whether all of u is surely in t: where that is not known of two
// patterns, it is not.
func (t Target) Holds(u Target) bool {
	switch {
	case t.Kind == u.Kind && t.Path == u.Path:
		return t.Kind != KindFile || t.Lines.Covers(u.Lines)
	case t.Kind == KindDir:
		return t.Path == "." || strings.HasPrefix(u.Path, t.Path+"/")
	case t.Kind == KindGlob && u.Kind == KindFile:
		return t.Overlaps(Target{KindFile, u.Path, Lines{}})
	}
	return false
}

// shapes are the target as paths of segments, one for each alternative in braces.
func (t Target) shapes() [][]segment {
	switch t.Kind {
	case KindFile:
		return [][]segment{literals(t.Path)}
	case KindDir:
		if t.Path == "." {
			return [][]segment{{{deep: true}}}
		}
		// A file in the place of the folder is part of it.
		return [][]segment{append(literals(t.Path), segment{deep: true})}
	}
	var out [][]segment
	for _, alt := range alternatives(t.Path) {
		var shape []segment
		for part := range strings.SplitSeq(alt, "/") {
			if part == "**" {
				shape = append(shape, segment{deep: true})
				continue
			}
			shape = append(shape, segment{tokens: tokenize(part)})
		}
		out = append(out, shape)
	}
	return out
}

// segment is one name in a path: tokens, or ** for any number of names.
type segment struct {
	deep   bool
	tokens []token
}

func literals(name string) []segment {
	var out []segment
	for part := range strings.SplitSeq(name, "/") {
		out = append(out, segment{tokens: literal(part)})
	}
	return out
}

// pathsMeet reports whether some path matches both shapes.
func pathsMeet(a, b []segment) bool {
	return meet(len(a), len(b), meeting{
		endless: func(i int) bool { return a[i].deep },
		other:   func(j int) bool { return b[j].deep },
		both:    func(i, j int) bool { return namesMeet(a[i].tokens, b[j].tokens) },
	})
}

// namesMeet reports whether some name matches both token lists.
func namesMeet(a, b []token) bool {
	return meet(len(a), len(b), meeting{
		endless: func(i int) bool { return a[i].star },
		other:   func(j int) bool { return b[j].star },
		both:    func(i, j int) bool { return a[i].meets(b[j]) },
	})
}

// meeting tells of two patterns which elements match any number of symbols, and
// whether two single ones have a symbol in common.
type meeting struct {
	endless, other func(int) bool
	both           func(i, j int) bool
}

// meet reports whether two patterns of n and m elements have a word in common.
// It fills a table from the ends, so that its time is n×m whatever the patterns
// are.
func meet(n, m int, is meeting) bool {
	next := make([]bool, m+1)
	row := make([]bool, m+1)
	for i := n; i >= 0; i-- {
		for j := m; j >= 0; j-- {
			switch {
			case i == n && j == m:
				row[j] = true
			case i == n:
				row[j] = is.other(j) && row[j+1]
			case j == m:
				row[j] = is.endless(i) && next[j]
			case is.endless(i), is.other(j):
				row[j] = next[j] || row[j+1] // it ends here, or takes the other one's symbol
			default:
				row[j] = next[j+1] && is.both(i, j)
			}
		}
		next, row = row, next
	}
	return next[0]
}

// maxAlternatives bounds what braces may multiply to.
const maxAlternatives = 64

// alternatives writes out the braces of a pattern. It stops early when there are
// too many.
func alternatives(pattern string) []string {
	open, depth := -1, 0
	var parts []int
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			if end := classEnd(pattern, i); end > i {
				i = end
			}
		case c == '{':
			if depth++; depth == 1 {
				open, parts = i, []int{i}
			}
		case c == ',' && depth == 1:
			parts = append(parts, i)
		case c == '}' && depth > 0:
			if depth--; depth > 0 {
				continue
			}
			var out []string
			for k, at := range parts {
				end := i
				if k+1 < len(parts) {
					end = parts[k+1]
				}
				out = append(out, alternatives(pattern[:open]+pattern[at+1:end]+pattern[i+1:])...)
				if len(out) > maxAlternatives {
					return out
				}
			}
			return slices.Compact(out)
		}
	}
	return []string{pattern}
}

// classEnd returns where the class that begins at i ends, or i.
func classEnd(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case ']':
			if j > i+1 {
				return j
			}
		}
	}
	return i
}

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
