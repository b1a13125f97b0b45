package redact

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// maxPEM bounds a private key's block. The longest keys in use have 13 KiB.
const maxPEM = 24 << 10

// pemBegin matches the first line of a private key's block.
var pemBegin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`)
})

// privateKey masks everything between the lines that begin and end a private
// key. If the end was cut off, it masks what still looks like the key.
func (s *scan) privateKey(start int) {
	rest := s.text[start:min(start+maxPEM, len(s.text))]
	m := pemBegin().FindIndex(rest)
	if m == nil {
		return
	}
	body := rest[m[1]:]
	end := bytes.Index(body, []byte("-----END"))
	if end < 0 {
		end = keyText(body)
	}
	s.pem = start + m[1] + end
	if end > 0 {
		s.found = append(s.found, Match{start + m[1], s.pem, "private-key"})
	}
}

// BeginsPrivateKey reports whether the block of a private key begins in a line.
func BeginsPrivateKey(line []byte) bool {
	i := bytes.Index(lower(nil, line), []byte(pemWord))
	return i >= 0 && pemBegin().Match(line[i:])
}

// keyText returns how much of body can belong to a key: base64, blanks, line ends
// (also as \n in a string), and the headers of RFC 1421.
func keyText(body []byte) int {
	at := 0
	for at < len(body) {
		line := body[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		text := strings.TrimSpace(string(line))
		name, _, header := strings.Cut(text, ": ")
		header = header && len(text) < 80 && !strings.Contains(name, " ")
		if strings.ContainsFunc(text, notKey) && !header {
			return at
		}
		at += len(line)
	}
	return at
}

func notKey(r rune) bool {
	return (r > 0x7f || !isTokenByte(byte(r))) && r != '\\' && r != '\r' && r != '"' && r != '\'' && r != '|'
}
