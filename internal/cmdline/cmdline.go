// Package cmdline reads command lines the way git does: option tables with unique
// prefixes and bundled letters, git's own quoting, and words of which a part is not
// known.
//
// Its texts are what a shell would have after expansion. A part that the text
// leaves open (a variable from outside, a program's output) stands in it as an
// open part: see Open.
package cmdline

import (
	"iter"
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

// option is one option of a table.
type option struct {
	name  string // long name, or the letter of a lone short option
	short byte   // 0 where there is none
	long  bool
	value byte // 0, '=' or '?'
}

// options reads a table of options, in the form of git's parse-options: those that
// take a value, and those that the caller asks for. A switch that nobody asks for
// needs a place only where its name begins another one's: a unique prefix of any
// other matches nothing in the table. It is written as words: "q/quiet" is a switch
// with a short form, "file=" takes a value, "gpg-sign?" may have one glued on, "x"
// is a lone short option, "b=" one with a value.
func options(table string) iter.Seq[option] {
	return func(yield func(option) bool) {
		for w := range strings.FieldsSeq(table) {
			var o option
			if c := w[len(w)-1]; c == '=' || c == '?' {
				o.value, w = c, w[:len(w)-1]
			}
			o.name = w
			if len(w) == 1 || w[1] == '/' {
				o.short, o.name = w[0], w[min(2, len(w)):]
			}
			if o.long = o.name != ""; !o.long {
				o.name = w
			}
			if !yield(o) {
				return
			}
		}
	}
}

// Parsed is an argument list that was read with an option table.
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

// Parse reads args with an option table (see options) as git's parse_options does:
// options and operands may mix, "--" and "--end-of-options" end the options, long
// names may be cut to a unique prefix, "--no-" takes back.
func Parse(table string, args []string) *Parsed { return parse(table, args, false) }

// ParseUntil is Parse for a command that hands what follows its first operand to
// another one.
func ParseUntil(table string, args []string) *Parsed { return parse(table, args, true) }

func parse(table string, args []string, stop bool) *Parsed {
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
		case a == "--help" || a == "--help-all" || a == "-h" && letter(table, 'h').name == "":
			p.Help = true
		case strings.HasPrefix(a, "--"):
			i += p.long(table, a[2:], args[i+1:])
		case len(a) > 1 && a[0] == '-':
			i += p.short(table, a[1:], args[i+1:])
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
func (p *Parsed) long(table, word string, rest []string) (took int) {
	name, value, glued := strings.Cut(word, "=")
	var hits, negated []option
	for o := range options(table) {
		base, isNo := strings.CutPrefix(o.name, "no-")
		switch {
		case !o.long:
		case o.name == name:
			hits, negated = []option{o}, nil
		case "no-"+o.name == name || isNo && base == name:
			hits, negated = nil, []option{o}
		case strings.HasPrefix(o.name, name):
			hits = append(hits, o)
			continue
		case isNo && strings.HasPrefix(base, name) || len(name) > 3 && strings.HasPrefix("no-"+o.name, name):
			negated = append(negated, o)
			continue
		default:
			continue
		}
		if o.long {
			break
		}
	}
	if len(hits)+len(negated) == 1 {
		for _, o := range negated {
			delete(p.Values, o.name)
		}
	}
	for _, o := range hits { // an ambiguous prefix fails in git; what could be dangerous counts
		v := value
		if o.value == '=' && !glued && len(rest) > 0 {
			v, took = rest[0], 1
		}
		p.Values[o.name] = append(p.Values[o.name], v)
	}
	return took
}

// letter returns the short option of a letter; one without a name is none.
func letter(table string, c byte) option {
	for o := range options(table) {
		if o.short == c {
			return o
		}
	}
	return option{}
}

// short reads a bundle of short options and returns how many further words it took.
func (p *Parsed) short(table, letters string, rest []string) (took int) {
	for i := range len(letters) {
		o, value := letter(table, letters[i]), letters[i+1:]
		if o.name == "" {
			continue
		}
		if o.value == '=' && value == "" && len(rest) > 0 {
			value, took = rest[0], 1
		}
		if o.value == 0 {
			value = ""
		}
		p.Values[o.name] = append(p.Values[o.name], value)
		if o.value != 0 {
			break
		}
	}
	return took
}
