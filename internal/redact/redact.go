package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// Redactor finds and masks secrets. Make it with New; its methods may be called
// concurrently. A nil Redactor finds nothing.
type Redactor struct {
	literals []literal

	once     sync.Once
	patterns [][]byte
	words    []word // what each pattern stands for

	compared atomic.Int64 // bytes
	building sync.Once
	trie     *ahocorasick.Trie
}

// mostCompared is how many bytes of text are compared with one pattern after the other:
// to build the automaton takes longer, and 3 MB.
const mostCompared = 16 << 10

// word is a pattern of the automaton: a literal to be masked, or a keyword at
// which rules are tried.
type word struct {
	literals []*literal // those that begin with it
	rules    []*rule
	key      bool // the beginning of a PEM block
}

// Match is a secret in a text.
type Match struct {
	Start, End int    // bytes
	Name       string // the variable, or the rule
}

// pemWord begins a PEM block.
const pemWord = "-----begin"

// literalProbe is how much of a literal the automaton knows; a state of it takes
// two kilobytes. The rest is compared.
const literalProbe = 32

// New makes a Redactor for the variables of an environment (KEY=VALUE) with
// secret-like names and for the extra values. The first long
// text builds the automaton.
func New(env []string, extra ...string) *Redactor {
	return &Redactor{literals: literals(env, extra)}
}

func (r *Redactor) build() {
	index := map[string]int{}
	at := func(pattern string) *word {
		i, ok := index[pattern]
		if !ok {
			i = len(r.patterns)
			index[pattern] = i
			r.patterns, r.words = append(r.patterns, []byte(pattern)), append(r.words, word{})
		}
		return &r.words[i]
	}
	for i := range r.literals {
		l := &r.literals[i]
		w := at(string(lower(nil, []byte(l.text[:min(len(l.text), literalProbe)]))))
		w.literals = append(w.literals, l)
	}
	for _, rule := range parseRules() {
		for _, k := range rule.keywords {
			w := at(k)
			w.rules = append(w.rules, rule)
		}
	}
	at(pemWord).key = true
}

// walk calls fn for each pattern in text, in the order of their ends, longer ones first:
// with the position of the last byte, the length and the pattern's number.
func (r *Redactor) walk(text []byte, fn ahocorasick.WalkFn) {
	if r.compared.Add(int64(len(text))) > mostCompared {
		r.building.Do(func() { r.trie = ahocorasick.NewTrieBuilder().AddPatterns(r.patterns).Build() })
		r.trie.Walk(text, fn)
		return
	}
	type hit struct{ end, n, pattern int64 }
	var hits []hit
	for i, p := range r.patterns {
		for at := 0; ; at++ {
			next := bytes.Index(text[at:], p)
			if next < 0 {
				break
			}
			at += next
			hits = append(hits, hit{int64(at + len(p) - 1), int64(len(p)), int64(i)})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(b.n, a.n)) })
	for _, h := range hits {
		fn(h.end, h.n, h.pattern)
	}
}

// lower appends text in ASCII lower case to dst.
func lower(dst, text []byte) []byte {
	dst = append(dst, text...)
	for i, c := range dst {
		if 'A' <= c && c <= 'Z' {
			dst[i] = c + 'a' - 'A'
		}
	}
	return dst
}

// Find returns the secrets in text, in order and without overlaps.
func (r *Redactor) Find(text []byte) []Match {
	if r == nil {
		return nil
	}
	return r.find(text, make([]byte, 0, len(text)), map[*rule]int{})
}

// find is Find with the caller's buffer, and with what the rules have used of
// their allowance.
func (r *Redactor) find(text, buffer []byte, spent map[*rule]int) []Match {
	if len(text) < minSecret {
		return nil
	}
	r.once.Do(r.build)
	s := scan{text: text, spent: spent}
	r.walk(lower(buffer[:0], text), func(end, n, pattern int64) bool {
		s.hit(&r.words[pattern], int(end-n)+1, int(end)+1)
		return true
	})
	return s.ordered()
}

// Text returns s with its secrets masked.
func (r *Redactor) Text(s string) string {
	found := r.Find([]byte(s))
	if len(found) == 0 {
		return s
	}
	return string(masked(nil, []byte(s), found))
}

// Bytes returns b with its secrets masked; b itself if there are none.
func (r *Redactor) Bytes(b []byte) []byte {
	found := r.Find(b)
	if len(found) == 0 {
		return b
	}
	return masked(nil, b, found)
}

// masked appends text to dst with the matches replaced.
func masked(dst, text []byte, found []Match) []byte {
	at := 0
	for _, m := range found {
		dst = append(append(append(append(dst, text[at:m.Start]...), "[redacted:"...), m.Name...), ']')
		at = m.End
	}
	return append(dst, text[at:]...)
}

// scan collects the matches of one text.
type scan struct {
	text  []byte
	found []Match
	tried map[*rule]int // up to where a rule has looked
	spent map[*rule]int // bytes that it has looked at in vain
	pem   int           // the end of the last PEM block
}

func (s *scan) hit(w *word, start, end int) {
	for _, l := range w.literals {
		if stop := start + len(l.text); stop <= len(s.text) && string(s.text[start:stop]) == l.text {
			s.found = append(s.found, Match{start, stop, l.name})
		}
	}
	if w.key && start >= s.pem {
		s.privateKey(start)
	}
	for _, rule := range w.rules {
		s.try(rule, start, end)
	}
}

// How far a rule looks before and after its keyword, and how long a token can
// be that continues after what the rule matched.
const (
	lookBehind = 128
	lookAhead  = 1024
	maxToken   = 4 << 10
	// maxVain is how many bytes a rule looks at without finding anything before
	// it is dropped for a text: a program must not keep us busy for minutes
	// with words that rules begin with.
	maxVain = 4 << 20
)

// try looks for a rule's tokens around its keyword.
func (s *scan) try(r *rule, start, end int) {
	if s.tried == nil {
		s.tried = map[*rule]int{}
	}
	upTo := s.tried[r]
	if end <= upTo {
		return
	}
	re := r.regexp()
	if re == nil {
		return
	}
	from, to := s.window(r, start, end)
	if s.spent[r] > maxVain || !r.plausible(s.text[from:to], end-from) {
		return
	}
	if r.at {
		if m := re.FindSubmatchIndex(s.text[start:to]); m != nil {
			s.take(r, start, m)
		}
		return
	}
	last, before := end, len(s.found)
	for _, m := range re.FindAllSubmatchIndex(s.text[from:to], -1) {
		last = max(last, from+m[1])
		s.take(r, from, m)
	}
	if len(s.found) == before {
		s.spent[r] += to - from
	}
	// Whatever begins in the first half of the window has been looked at
	// completely.
	s.tried[r] = max(last, end+(to-end)/2)
}

// take enters a rule's match; m counts from the byte at from.
func (s *scan) take(r *rule, from int, m []int) {
	a, b := group(m)
	a, b = from+a, from+b
	if r.entropy > 0 && entropyOf(s.text[a:b]) < r.entropy {
		return
	}
	limit := min(b+maxToken, len(s.text))
	for b < limit && isTokenByte(s.text[b-1]) && isTokenByte(s.text[b]) { // the rest of a longer one
		b++
	}
	s.found = append(s.found, Match{a, b, r.id})
}

// window returns what a rule sees around its keyword: some lines, cut to a fixed
// length.
func (s *scan) window(r *rule, start, end int) (from, to int) {
	ahead, lines := r.reach()
	from, to = max(start-lookBehind, 0), min(end+ahead, len(s.text))
	if i := bytes.LastIndexByte(s.text[from:start], '\n'); i >= 0 {
		from += i + 1
	}
	at := end
	for range lines {
		i := bytes.IndexByte(s.text[at:to], '\n')
		if i < 0 {
			return from, to
		}
		at += i + 1
	}
	return from, at
}

// group returns the first group that took part in a match, or else the whole
// match.
func group(m []int) (start, end int) {
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

func isTokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("_-+/=", c) >= 0
}

// ordered sorts the matches and joins those that overlap; the one that begins
// first gives the name.
func (s *scan) ordered() []Match {
	slices.SortFunc(s.found, func(a, b Match) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	out := s.found[:0]
	for _, m := range s.found {
		if n := len(out); n > 0 && m.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, m.End)
			continue
		}
		out = append(out, m)
	}
	return out
}

// Contains reports whether text holds a secret.
func (r *Redactor) Contains(text string) bool { return len(r.Find([]byte(text))) > 0 }

// binaryProbe is how much of a content is looked at to tell text from binary.
const binaryProbe = 8 << 10

// IsText reports whether a content that begins with head is text: it has no NUL.
func IsText(head []byte) bool { return bytes.IndexByte(head[:min(len(head), binaryProbe)], 0) < 0 }
