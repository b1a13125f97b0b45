// Package cmdline reads command lines the way git does: option tables with unique
// prefixes and bundled letters, git's own quoting, and words of which a part is not
// known.
//
// Its texts are what a shell would have after expansion. A part that the text
// leaves open (a variable from outside, a program's output) stands in it as an
// open part: see Open.
package cmdline

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// In reports whether word is one of the words of a list that white space separates.
func In(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// Under joins p to dir unless p is absolute. Both may hold open parts.
func Under(dir, p string) string {
	switch {
	case p == "":
		return dir
	case path.IsAbs(p):
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// Split splits a line as git's split_cmdline does: quotes and backslashes, nothing
// else.
func Split(s string) []string {
	var out []string
	var cur strings.Builder
	var quote byte
	inWord := false
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote == 0 && strings.IndexByte(" \t\r\n", ch) >= 0:
			if inWord {
				out = append(out, cur.String())
				cur.Reset()
				inWord = false
			}
			continue
		case quote == 0 && (ch == '\'' || ch == '"'):
			quote = ch
		case ch == quote:
			quote = 0
		case ch == '\\' && quote != '\'' && i+1 < len(s):
			i++
			cur.WriteByte(s[i])
		default:
			cur.WriteByte(ch)
		}
		inWord = true
	}
	if inWord {
		out = append(out, cur.String())
	}
	return out
}

// Options is the option table of one command in the form of git's parse-options:
// what takes a value, and which long names exist, since only then a unique prefix
// can be recognized.
type Options struct {
	longs  map[string]option // by long name
	shorts map[byte]option
}

type option struct {
	name  string // long name, or the letter of a lone short option
	value byte   // 0, '=' or '?'
}

// NewOptions reads a table that is written as words: "q/quiet" is a switch with a
// short form, "file=" takes a value, "gpg-sign?" may have one glued on, "x" is a
// lone short option, "b=" one with a value.
func NewOptions(table string) *Options {
	s := &Options{longs: map[string]option{}, shorts: map[byte]option{}}
	for w := range strings.FieldsSeq(table) {
		var o option
		if c := w[len(w)-1]; c == '=' || c == '?' {
			o.value, w = c, w[:len(w)-1]
		}
		short, long, both := strings.Cut(w, "/")
		switch {
		case both:
			o.name = long
			s.shorts[short[0]], s.longs[long] = o, o
		case len(w) == 1:
			o.name = w
			s.shorts[w[0]] = o
		default:
			o.name = w
			s.longs[w] = o
		}
	}
	return s
}

// Parsed is an argument list that Options has read.
type Parsed struct {
	Values map[string][]string // by the option's name; "" for a switch
	Args   []string            // what is no option
	Dash   int                 // number of Args before "--", or -1
	Help   bool                // -h or --help
}

// Has reports whether one of the options was given.
func (p *Parsed) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return p.Values[n] != nil })
}

// Last returns the last value of an option, or "".
func (p *Parsed) Last(name string) string {
	v := p.Values[name]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

func (p *Parsed) set(o option, value string, negated bool) {
	if negated {
		delete(p.Values, o.name)
		return
	}
	p.Values[o.name] = append(p.Values[o.name], value)
}

// Parse reads args with an option table, see NewOptions.
func Parse(table string, args []string) *Parsed { return NewOptions(table).Parse(args, false) }

// ParseUntil is Parse for a command that hands what follows its first operand to
// another one.
func ParseUntil(table string, args []string) *Parsed { return NewOptions(table).Parse(args, true) }

// Parse reads args as git's parse_options does: options and operands may mix
// unless stop is set, "--" and "--end-of-options" end the options, long names may
// be cut to a unique prefix, "--no-" takes back.
func (s *Options) Parse(args []string, stop bool) *Parsed {
	p := &Parsed{Values: map[string][]string{}, Dash: -1}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			p.Dash = len(p.Args)
			p.Args = append(p.Args, args[i+1:]...)
			return p
		case a == "--end-of-options":
			p.Args = append(p.Args, args[i+1:]...)
			return p
		case a == "--help" || a == "--help-all" || a == "-h" && s.shorts['h'].name == "":
			p.Help = true
		case strings.HasPrefix(a, "--"):
			i += s.long(p, a[2:], args[i+1:])
		case len(a) > 1 && a[0] == '-':
			i += s.short(p, a[1:], args[i+1:])
		default:
			p.Args = append(p.Args, a)
			if stop {
				p.Args = append(p.Args, args[i+1:]...)
				return p
			}
		}
	}
	return p
}

// long reads one long option and returns how many further words it took.
func (s *Options) long(p *Parsed, word string, rest []string) (took int) {
	name, value, glued := strings.Cut(word, "=")
	hits := s.match(name)
	for _, h := range hits {
		v := value
		if h.value == '=' && !h.negated && !glued && len(rest) > 0 {
			v, took = rest[0], 1
		}
		if h.negated && len(hits) > 1 {
			continue // an ambiguous prefix fails in git; what could be dangerous counts
		}
		p.set(h.option, v, h.negated)
	}
	return took
}

type hit struct {
	option
	negated bool
}

// match finds the options that a long name or a prefix of one stands for.
func (s *Options) match(name string) []hit {
	if o, ok := s.longs[name]; ok {
		return []hit{{o, false}}
	}
	if base, ok := strings.CutPrefix(name, "no-"); ok {
		if o, ok := s.longs[base]; ok {
			return []hit{{o, true}}
		}
	}
	if o, ok := s.longs["no-"+name]; ok {
		return []hit{{o, true}}
	}
	var hits []hit
	for _, long := range slices.Sorted(maps.Keys(s.longs)) {
		if strings.HasPrefix(long, name) {
			hits = append(hits, hit{s.longs[long], false})
		} else if strings.HasPrefix("no-"+long, name) && len(name) > 3 {
			hits = append(hits, hit{s.longs[long], true})
		} else if base, ok := strings.CutPrefix(long, "no-"); ok && strings.HasPrefix(base, name) {
			hits = append(hits, hit{s.longs[long], true})
		}
	}
	return hits
}

// short reads a bundle of short options and returns how many further words it took.
func (s *Options) short(p *Parsed, letters string, rest []string) int {
	for i := range len(letters) {
		o, ok := s.shorts[letters[i]]
		after := letters[i+1:]
		switch {
		case !ok:
		case o.value == '?', o.value == '=' && (after != "" || len(rest) == 0):
			p.set(o, after, false)
			return 0
		case o.value == '=':
			p.set(o, rest[0], false)
			return 1
		default:
			p.set(o, "", false)
		}
	}
	return 0
}
