package guard

import (
	"path"
	"strings"
)

// A value is a string whose unknown parts are written as mark, a kind letter, a
// name, mark. NUL can be in no argument, so a value without mark is exact. The
// name keeps two unknown variables apart.
const mark = '\x00'

// The kinds of unknown parts.
const (
	kindOpen      = 'u' // nothing is known
	kindPaths     = 'p' // names of files, from ls, find, grep -l
	kindTracked   = 'g' // names of files that git listed: tracked or changed ones
	kindUntracked = 'o' // names of files that git listed as untracked or ignored
	kindBlob      = 'b' // the contents of a file in a commit; the name is its path
	kindDiff      = 'd' // the output of git diff or show
	kindArchive   = 'a' // the output of git archive
	kindCommit    = 'c' // the id of a commit
	kindBlobID    = 'i' // the id of a file's contents in a commit; the name is its path
	kindReverse   = 'r' // the output of git diff -R
	kindPlace     = 'v' // a part of the starting directory when that is not known
)

func unknownValue(kind byte, name string) string {
	name = tame(name)
	if kind != kindBlob && kind != kindBlobID { // the slashes of a committed file's path are needed
		name = strings.ReplaceAll(name, "/", "_")
	}
	return string(rune(mark)) + string(kind) + name[:min(len(name), 200)] + string(rune(mark))
}

// tame keeps of a name what means nothing to a parser.
func tame(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '/':
			return r
		}
		return '_'
	}, name)
}

func isKnown(s string) bool { return strings.IndexByte(s, mark) < 0 }

// unknownParts calls yield with each unknown part's kind and name.
func unknownParts(s string, yield func(kind byte, name string) bool) {
	for {
		i := strings.IndexByte(s, mark)
		if i < 0 || i+1 >= len(s) {
			return
		}
		rest := s[i+1:]
		j := strings.IndexByte(rest, mark)
		if j < 1 || !yield(rest[0], rest[1:j]) {
			return
		}
		s = rest[j+1:]
	}
}

// kindOf returns the most telling kind among a value's unknown parts, 0 when
// there is none.
func kindOf(s string) byte {
	var kind byte
	for k := range func(y func(byte, string) bool) { unknownParts(s, y) } {
		if kind == 0 || kind == kindOpen || kind == kindPlace {
			kind = k
		}
	}
	return kind
}

// shown makes values printable.
func shown(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = printable(w)
	}
	return out
}

func printable(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, mark)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		j := strings.IndexByte(s[i+1:], mark)
		if j < 0 {
			return b.String()
		}
		b.WriteString("…")
		s = s[i+1+j+1:]
	}
}

// under joins p to dir unless p is absolute. Both may hold unknown parts.
func under(dir, p string) string {
	if p == "" {
		return dir
	}
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}
