package guard

import "strings"

// token is one token of program text, as far as this package needs it.
type token struct {
	kind   byte // 'i' name, 's' string, 'l' list of words, '`' command, 'p' punctuation, 'n' end of line
	text   string
	words  []string
	col    int  // where it stands in its line
	interp byte // how variables stand in it, see interpolations; 0: not at all
}

// tokenize reads program text into names, strings and punctuation. It knows no
// grammar: a regular expression that holds a quote may confuse it, then strings
// are missed, never invented as commands.
func tokenize(l *lang, text string) []token {
	t := &tokenizer{lang: l, text: text}
	line := 0 // where the line under way begins
	for t.pos < len(text) && len(t.out) < 50_000 {
		n, at := len(t.out), t.pos
		t.next()
		for i := n; i < len(t.out); i++ {
			t.out[i].col = at - line
		}
		if j := strings.LastIndexByte(text[at:t.pos], '\n'); j >= 0 {
			line = at + j + 1
		}
	}
	return t.out
}

type tokenizer struct {
	lang *lang
	text string
	pos  int
	out  []token
}

func (t *tokenizer) add(kind byte, text string) { t.out = append(t.out, token{kind: kind, text: text}) }

func (t *tokenizer) next() {
	rest := t.text[t.pos:]
	ch := rest[0]
	switch {
	case ch == '\n':
		t.add('n', "\n")
		t.pos++
	case ch == ' ' || ch == '\t' || ch == '\r':
		t.pos++
	case strings.HasPrefix(rest, t.lang.comment):
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			t.pos += i
		} else {
			t.pos = len(t.text)
		}
	case ch == '\'' || ch == '"' || ch == '`':
		t.quoted(ch)
	case ch == '%' && t.lang.name == "ruby" && len(rest) > 2 && strings.IndexByte("xwWqQi", rest[1]) >= 0 && strings.IndexByte("([{<|!/", rest[2]) >= 0:
		t.pos++
		t.operator(rest[1:2])
	case isNameByte(ch):
		n := 1
		for n < len(rest) && (isNameByte(rest[n]) || rest[n] == '-' && t.lang.name == "emacs") {
			n++
		}
		t.pos += n
		t.name(rest[:n])
	default:
		t.add('p', string(ch))
		t.pos++
	}
}

func isNameByte(b byte) bool {
	return b == '_' || b == '$' || b == '@' || b == mark || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
}

// name is a name, a string prefix (r"…") or a quoting operator (qw(…)).
func (t *tokenizer) name(word string) {
	if t.pos < len(t.text) {
		next := t.text[t.pos]
		if t.lang.name == "python" && len(word) <= 2 && (next == '"' || next == '\'') && strings.Trim(strings.ToLower(word), "rbfu") == "" {
			t.quoted(next)
			if strings.ContainsAny(word, "fF") && len(t.out) > 0 {
				t.out[len(t.out)-1].interp = 'f'
			}
			return
		}
		if t.lang.name == "perl" && (word == "qx" || word == "qw" || word == "q" || word == "qq") && strings.IndexByte("([{</|!", next) >= 0 {
			t.pos -= len(word)
			t.operator(word)
			return
		}
	}
	t.add('i', word)
}

// operator is qx(…), qw(…), %x{…}, %w[…].
func (t *tokenizer) operator(word string) {
	start := t.pos + len(word)
	open := t.text[start]
	closing := open
	if i := strings.IndexByte("([{<", open); i >= 0 {
		closing = ")]}>"[i]
	}
	end := strings.IndexByte(t.text[start+1:], closing)
	if end < 0 {
		t.pos = len(t.text)
		return
	}
	body := t.text[start+1 : start+1+end]
	t.pos = start + 1 + end + 1
	switch word {
	case "qx", "x":
		t.out = append(t.out, token{kind: '`', text: body, interp: t.lang.interp})
	case "qw", "w", "W", "i":
		t.out = append(t.out, token{kind: 'l', words: strings.Fields(body)})
	case "qq", "Q":
		t.out = append(t.out, token{kind: 's', text: body, interp: t.lang.interp})
	default:
		t.add('s', body)
	}
}

// quoted is a string; Python's triple quotes included.
func (t *tokenizer) quoted(q byte) {
	triple := strings.Repeat(string(q), 3)
	if t.lang.name == "python" && strings.HasPrefix(t.text[t.pos:], triple) {
		body := t.text[t.pos+3:]
		end := strings.Index(body, triple)
		if end < 0 {
			t.pos = len(t.text)
			return
		}
		t.add('s', body[:end])
		t.pos += 3 + end + 3
		return
	}
	var b strings.Builder
	i := t.pos + 1
	for i < len(t.text) && t.text[i] != q {
		if t.text[i] == '\\' && i+1 < len(t.text) {
			i++
			switch t.text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\n':
			default:
				b.WriteByte(t.text[i])
			}
		} else {
			b.WriteByte(t.text[i])
		}
		i++
	}
	t.pos = min(i+1, len(t.text))
	kind := byte('s')
	if q == '`' {
		zx := len(t.out) > 0 && t.out[len(t.out)-1].kind == 'i' && t.out[len(t.out)-1].text == "$"
		if t.lang.back || zx {
			kind = '`'
		}
	}
	interp := byte(0)
	if q == '"' && t.lang.name != "node" || kind == '`' {
		interp = t.lang.interp
	}
	if q == '`' && t.lang.name == "node" {
		interp = 'j'
	}
	t.out = append(t.out, token{kind: kind, text: b.String(), interp: interp})
}
