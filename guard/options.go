package guard

import (
	"maps"
	"slices"
	"strings"
)

// optionSpec is the option table of one command in the form of git's
// parse-options: what takes a value, and which long names exist, since only then
// unique prefixes can be told. It is written as words: "q/quiet" a switch with a
// short form, "file=" takes a value, "gpg-sign?" may have one glued on, "x" a
// lone short option, "b=" one with a value.
type optionSpec struct {
	longs  map[string]option // by long name
	shorts map[byte]option
}

type option struct {
	name  string // long name, or the letter of a lone short option
	value byte   // 0, '=' or '?'
}

func newSpec(text string) *optionSpec {
	s := &optionSpec{longs: map[string]option{}, shorts: map[byte]option{}}
	for _, w := range strings.Fields(text) {
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

// parsed is a command's argument list, read by an optionSpec.
type parsed struct {
	values map[string][]string // option → values, "" for a switch
	args   []string            // what is no option
	dash   int                 // number of args before "--", or -1
	help   bool
	open   bool // an unknown part could be an option
}

func (p *parsed) has(names ...string) bool {
	for _, n := range names {
		if _, ok := p.values[n]; ok {
			return true
		}
	}
	return false
}

func (p *parsed) last(name string) string {
	v := p.values[name]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

func (p *parsed) set(o option, value string, negated bool) {
	if negated {
		delete(p.values, o.name)
		return
	}
	p.values[o.name] = append(p.values[o.name], value)
}

// parse reads args as git's parse_options does: options and arguments may mix
// unless stop is set, "--" and "--end-of-options" end the options, long names
// may be cut to a unique prefix, "--no-" takes back.
func (s *optionSpec) parse(args []string, stop bool) *parsed {
	p := &parsed{values: map[string][]string{}, dash: -1}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			p.dash = len(p.args)
			p.args = append(p.args, args[i+1:]...)
			return p
		case a == "--end-of-options":
			p.args = append(p.args, args[i+1:]...)
			return p
		case strings.HasPrefix(a, "--"):
			i += s.long(p, a[2:], args[i+1:])
		case len(a) > 1 && a[0] == '-':
			i += s.short(p, a[1:], args[i+1:])
		default:
			p.open = p.open || !isKnown(a) && a[0] == mark
			p.args = append(p.args, a)
			if stop {
				p.args = append(p.args, args[i+1:]...)
				return p
			}
		}
	}
	return p
}

// long handles one long option and returns how many further words it took.
func (s *optionSpec) long(p *parsed, word string, rest []string) int {
	name, value, glued := strings.Cut(word, "=")
	if name == "help" || name == "help-all" {
		p.help = true
		return 0
	}
	hits := s.match(name)
	took := 0
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
func (s *optionSpec) match(name string) []hit {
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

// short handles a bundle of short options.
func (s *optionSpec) short(p *parsed, letters string, rest []string) int {
	for i := 0; i < len(letters); i++ {
		o, ok := s.shorts[letters[i]]
		if !ok {
			if letters[i] == 'h' {
				p.help = true
			}
			continue
		}
		after := letters[i+1:]
		switch {
		case o.value == '?':
			p.set(o, after, false)
			return 0
		case o.value == '=' && after != "":
			p.set(o, after, false)
			return 0
		case o.value == '=':
			if len(rest) == 0 {
				p.set(o, "", false)
				return 0
			}
			p.set(o, rest[0], false)
			return 1
		default:
			p.set(o, "", false)
		}
	}
	return 0
}
